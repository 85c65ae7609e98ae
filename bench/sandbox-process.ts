import { createSandbox } from '../src/sandbox/index.ts'
import { serveCommands } from './child.ts'
import { peakRss } from './peak-rss.ts'

// The stand-in service in a process of its own. Arguments: its scale, its database file.

const [, , scale, db = ':memory:'] = process.argv
const sandbox = createSandbox({
  scale: scale === 'school' ? 'school' : 'class',
  db,
  now: '2026-06-10T10:00:00Z',
})
const { port } = await sandbox.listen()
serveCommands({ port }, { memory: () => ({ peakBytes: peakRss() }) })
