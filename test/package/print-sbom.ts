import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import * as z from 'zod'

import { readShippedLock } from './shipped-lock.ts'

const readJson = (name: string): unknown =>
  JSON.parse(readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8'))

/**
 * Prints the software bill of materials of an installation, as CycloneDX. `npm sbom --omit=dev` also omits packages that a development
 * dependency needs as well, such as pg, yaml and zod. Therefore `npm sbom` runs with a lock file without development dependencies.
 */
const parent = mkdtempSync(join(tmpdir(), 'markbridge-sbom-'))
// npm names the application after its folder.
const folder = join(parent, 'markbridge')
try {
  mkdirSync(folder)
  const manifest = { ...z.looseObject({}).parse(readJson('package.json')), devDependencies: {} }
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(readShippedLock()))
  const kind = ['--package-lock-only', '--sbom-type', 'application', '--sbom-format', 'cyclonedx']
  execFileSync('npm', ['sbom', ...kind], { cwd: folder, stdio: 'inherit' })
} finally {
  rmSync(parent, { recursive: true })
}
