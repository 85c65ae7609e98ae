import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { answerUnreadable } from '../http/answer-unreadable.ts'
import { startListening } from '../http/server.ts'
import { recordTypes } from './attendance/record-entity.ts'
import { createClock } from './clock.ts'
import { createFaultPlan } from './control/fault-plan.ts'
import { createControlRoutes } from './control/routes.ts'
import { joinFaults } from './edge/disturbance.ts'
import { createServer } from './edge/server.ts'
import { findLearnerSet } from './learner/learner-entities.ts'
import { openSchool } from './open-school.ts'
import { readOptions } from './options.ts'
import type { SandboxOptions, SandboxSettings } from './options.ts'
import { createRandom } from './random.ts'
import { createSecurity } from './security/create-security.ts'
import { createService } from './service.ts'
import type { ServiceSwitches } from './service.ts'

/** A stand-in service; it runs after `listen`. */
export interface Sandbox {
  /**
   * Starts to listen. Resolves to the base address, without a slash at the end, and the port. Error: `ADP_CONFIGURATION` where
   * it cannot.
   */
  listen(): Promise<{ url: string; port: number }>
  /** Ends all connections and closes the database. */
  close(): Promise<void>
}

/** The callbacks of a sandbox. */
export interface SandboxHooks {
  /** The share of the school that is built, 0 to 1; called where the database is new or has registers to fill in. */
  readonly onProgress?: (share: number) => void
  /** A fault of the sandbox itself, which its client reads as status 500. */
  readonly onError?: (error: unknown) => void
  /** The option that chooses its port, for the error about a port in use; default `--port`. */
  readonly portOption?: string
}

// Room for a filter over many learners: the query's own limit is to decide, not the parser of HTTP.
const maxHeaderBytes = 131_072
// A client's pool must time out first, or a connection closes at the moment of its reuse.
const keepAliveMs = 75_000

/**
 * Creates the stand-in service of service.md: strict, seeded, in one process, on one SQLite store. Key `sandbox` with
 * bearer `sandbox` is always accepted.
 *
 * Options, with their defaults: `host` '127.0.0.1', `port` 0 (any free one), `seed` 1, `scale` 'class' (30 current
 * learners) or 'school', `db` ':memory:' or a file, `now` (ISO date-time: a fixed clock; default the
 * machine's clock; it decides ages, roll states, years and how far registers are filled in), `control` true (`/_sandbox`, loopback only), `onExisting` 'replace' | 'duplicate' | 'conflict' (what
 * POST does on a marked session), `unmappedFields` 'report' | 'pass' | 'strict' (members beyond the flat write form), `typeNames` 'documented' | 'later' (type texts of references in reads), `pageSize` 1000,
 * `maxDays` 90 (longest range of an attendance read), `batch` true (whether V3 has `$batch`),
 * `contextUrl` (a service root that `@odata.context` names instead of the one that was called, as the real service does), `unavailable` [] (entity sets that answer 501), `maxBodyBytes` 32 MiB.
 * Callers besides the built-in one: `keys`, `tokens` [{ token, domains }], `clients` [{ id, secret, organisation, domains }]
 * of `POST /connect/token`; `callsPerSecond` of one key, none by default.
 *
 * Errors: `ADP_USAGE` for wrong options, and for a database file that cannot be opened or has other content.
 */
export function createSandbox(options: SandboxOptions = {}, hooks: SandboxHooks = {}): Sandbox {
  const settings = readOptions(options)
  const clock = createClock(settings.now === undefined ? undefined : Date.parse(settings.now))
  const school = openSchool(settings, () => clock.now(), hooks.onProgress ?? (() => undefined))
  const faults = createFaultPlan(createRandom(settings.seed, 'faults'))
  const reset = (): void => {
    school.undoWrites()
    faults.clear()
    school.storedValues.set(undefined)
  }
  const app = createServer({
    ...createSecurity(settings, school.ids.guid('user', 0), () => clock.now()),
    service: createService(
      school,
      toSwitches(settings),
      (method, path) => joinFaults(faults.strikeInside({ method, path })).reply,
    ),
    control: settings.control ? createControlRoutes({ school, clock, faults, reset }) : undefined,
    maxBodyBytes: settings.maxBodyBytes,
    contextUrl: settings.contextUrl,
    strike: (method, path) => faults.strike({ method, path }),
    staleAfter: () => faults.seqWhenSet(),
    onError: hooks.onError ?? (() => undefined),
  })
  const server = createHttpServer({ maxHeaderSize: maxHeaderBytes }, app)
  server.keepAliveTimeout = keepAliveMs
  server.on('clientError', answerUnreadable)
  return {
    listen: async () => {
      const port = await startListening(server, settings.port, settings.host, hooks.portOption)
      const host = settings.host.includes(':') ? `[${settings.host}]` : settings.host
      return { url: `http://${host}:${port}`, port }
    },
    close: async () => {
      if (server.listening) {
        const closed = once(server, 'close')
        server.close()
        server.closeAllConnections()
        await closed
      }
      school.database.close()
    },
  }
}

function toSwitches(settings: SandboxSettings): ServiceSwitches {
  const { onExisting, unmappedFields, typeNames, pageSize, maxDays, unavailable, batch } = settings
  return {
    onExisting,
    unmappedFields,
    pageSize,
    maxDays,
    batch,
    types: recordTypes[typeNames],
    unavailable: new Set(unavailable.map((name) => findLearnerSet(name)?.name ?? name)),
  }
}
