import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import * as z from 'zod'

import { readShippedLock } from './shipped-lock.ts'

const readJson = (name: string): unknown =>
  JSON.parse(readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8'))

/**
 * Prints the software bill of materials of an installation, as CycloneDX. `npm sbom --omit=dev` leaves out every package that a development
 * dependency needs as well, pg, yaml and zod among them: it is asked about a lock file without what is for development alone.
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
