import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

import type { Express } from 'express'

import { script } from './script.ts'
import { styles } from './styles.ts'

interface Asset {
  readonly type: string
  readonly body: Buffer
}

const packages = createRequire(import.meta.url)
const ofPackage = (path: string): Buffer => readFileSync(packages.resolve(path))

const javascript = 'text/javascript; charset=utf-8'
const files = {
  'console.css': { type: 'text/css; charset=utf-8', body: Buffer.from(styles) },
  'console.js': { type: javascript, body: Buffer.from(script) },
  'uplot.js': { type: javascript, body: ofPackage('uplot/dist/uPlot.esm.js') },
  'uplot.css': { type: 'text/css; charset=utf-8', body: ofPackage('uplot/dist/uPlot.min.css') },
} as const satisfies Readonly<Record<string, Asset>>

type AssetName = keyof typeof files

/** The path of a file, with a hash of its content: a browser keeps it for good. */
export const assetPath = (name: AssetName): string =>
  `/assets/${createHash('sha256').update(files[name].body).digest('hex').slice(0, 16)}/${name}`

/** Serves the files of the pages; they are the same for everyone. */
export function serveAssets(app: Express): void {
  for (const [name, { type, body }] of Object.entries(files))
    app.get(assetPath(name as AssetName), (_request, response) => {
      response
        .set({ 'Content-Type': type, 'Cache-Control': 'public, max-age=31536000, immutable' })
        .send(body)
    })
}
