import { createSandbox } from '../src/sandbox/index.ts'
import { serveCommands } from './child.ts'
import { peakRss } from './peak-rss.ts'

// Runs the sandbox. Arguments: its scale and its database file.

const [, , scale, db = ':memory:'] = process.argv
const sandbox = createSandbox({
  scale: scale === 'school' ? 'school' : 'class',
  db,
  now: '2026-06-10T10:00:00Z',
})
const { port } = await sandbox.listen()
serveCommands({ port }, { memory: () => ({ peakBytes: peakRss() }) })
