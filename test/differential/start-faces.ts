import { createApp, parseConfig } from '../../src/index.ts'
import { createLogger } from '../../src/observability/logger.ts'
import type { SandboxOptions } from '../../src/sandbox/index.ts'
import type { Pair } from './exceptions.ts'
import { openFace } from './exchange.ts'
import type { Read } from './grammar/read.ts'
import { type Samples, startSchool } from './grammar/samples.ts'

export interface Faces {
  readonly samples: Samples
  readonly ask: (read: Read) => Promise<Pair>
  readonly close: () => Promise<void>
}

/**
 * Starts a sandbox whose V2 interface is the reference, the adapter in front of its V3 interface, and an equal sandbox whose V2 interface
 * allows date ranges of 10,000 days.
 */
export async function startFaces(options: SandboxOptions = {}): Promise<Faces> {
  const school = await startSchool(options)
  const wideSchool = await startSchool({ ...options, maxDays: 10_000 })
  const app = createApp(
    parseConfig({
      listen: { port: 0 },
      journal: { url: 'none' },
      upstreams: { v3: { baseUrl: school.url } },
      partners: [{ id: 'default', match: { any: true }, reads: { histories: true } }],
    }),
    { logger: createLogger('fatal', { write: () => undefined }) },
  )
  const { url } = await app.listen()
  const [legacy, wide, adapter] = [openFace(school.url), openFace(wideSchool.url), openFace(url)]
  return {
    samples: school.samples,
    ask: async (read) => {
      const [theirs, ours] = await Promise.all([legacy.readAll(read), adapter.readAll(read)])
      const isWide = theirs[0]?.body.includes('"DateRangeTooLong"') === true
      return { legacy: theirs, adapter: ours, wide: isWide ? await wide.readAll(read) : undefined }
    },
    close: async () => {
      await Promise.all([legacy, wide, adapter].map((face) => face.close()))
      await app.close()
      await Promise.all([school, wideSchool].map(({ sandbox }) => sandbox.close()))
    },
  }
}
