import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { createSandbox } from '../src/sandbox/index.ts'
import { serveCommands } from './child.ts'

// Runs the sandbox with a school of 720 pupils as the V3 service.

const folder = mkdtempSync(join(tmpdir(), 'markbridge-bench-'))
const sandbox = createSandbox({ scale: 'school', db: join(folder, 'school.db'), now: '2026-06-10T10:00:00Z' })
const { port } = await sandbox.listen()
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
serveCommands({ port }, {})
