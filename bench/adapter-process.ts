import { setFlagsFromString } from 'node:v8'

import { Client } from 'pg'

import { createApp } from '../src/app.ts'
import { parseConfig } from '../src/config/index.ts'
import { cpuMs, serveCommands } from './child.ts'
import { peakRss } from './peak-rss.ts'

// The whole adapter with its defaults, in a process of its own. Arguments: the address of the upstream, that of the journal
// (default none), that of V2: with one, V2 serves, and the share of its exchanges that is compared, in percent: with one the stage
// is `shadow`. `--batch=multipart` or `--batch=json` joins records into a $batch of V3.

// As src/cli/main.ts does.
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
/** Statements to PostgreSQL. */
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
