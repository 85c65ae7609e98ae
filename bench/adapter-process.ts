import { setFlagsFromString } from 'node:v8'

import { Client } from 'pg'

import { createApp } from '../src/app.ts'
import { parseConfig } from '../src/config/index.ts'
import { cpuMs, serveCommands } from './child.ts'
import { peakRss } from './peak-rss.ts'

// Runs the whole adapter with its defaults. Arguments: the address of V3, the address of the journal (default `none`), the address of V2,
// and the percentage of exchanges that the adapter compares. With V2 the stage is `legacy`, and with a percentage it is `shadow`.
// `--batch=multipart` or `--batch=json` makes the adapter join records into a $batch of V3.

// The same V8 options as in src/cli/main.ts.
setFlagsFromString('--no-allocation-site-pretenuring')
setFlagsFromString('--heap-growing-percent=60')
const batchFormat = /^--batch=(.*)/.exec(process.argv.at(-1) ?? '')?.[1]
const [upstream, journal = 'none', v2, percent] = process.argv.slice(2).filter((one) => !one.startsWith('--'))
const served = v2 === undefined ? 'v3' : percent === undefined ? 'legacy' : 'shadow'
const app = createApp(
  parseConfig({
    journal: { url: journal },
    listen: { port: 0 },
    upstreams: {
      v3: { baseUrl: upstream, connections: 32 },
      ...(v2 === undefined ? {} : { v2: { baseUrl: v2 } }),
    },
    partners: [
      {
        id: 'bench',
        match: { any: true },
        stage: served,
        ...(batchFormat === undefined ? {} : { v3: { writeMode: 'batch', batchFormat } }),
        ...(percent === undefined ? {} : { compare: { percent: Number(percent) } }),
      },
    ],
  }),
)
/** The number of statements that the adapter has sent to PostgreSQL. */
let statements = 0
// eslint-disable-next-line @typescript-eslint/unbound-method -- called with its own client
const query: (this: Client, ...args: unknown[]) => unknown = Client.prototype.query
Object.assign(Client.prototype, {
  query(this: Client, ...args: unknown[]) {
    statements += 1
    return query.apply(this, args)
  },
})
const { port } = await app.listen()
serveCommands(
  { port },
  {
    cpu: () => ({ cpuMs: cpuMs(), statements }),
    memory: () => ({ rssBytes: process.memoryUsage.rss(), peakBytes: peakRss() }),
  },
)
