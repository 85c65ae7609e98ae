import type { RequestListener } from 'node:http'
import { recordTypes } from './attendance/record-entity.ts'
import { createClock } from './clock.ts'
import { createFaultPlan } from './control/fault-plan.ts'
import type { FaultPlan } from './control/fault-plan.ts'
import { createControlRoutes } from './control/routes.ts'
import { joinFaults } from './edge/disturbance.ts'
import { createHttpPort } from './edge/http-port.ts'
import { portOf } from './edge/request.ts'
import { createServer } from './edge/server.ts'
import type { ServerParts } from './edge/server.ts'
import { findLearnerSet } from './learner/learner-entities.ts'
import { openSchool } from './open-school.ts'
import { readOptions } from './options.ts'
import type { SandboxOptions, SandboxSettings } from './options.ts'
import { createRandom } from './random.ts'
import { createSecurity } from './security/create-security.ts'
import { createService } from './service.ts'
import type { ServicePort, ServiceSwitches } from './service.ts'

/** A stand-in service; it runs after `listen`. */
export interface Sandbox {
  /**
   * Starts to listen. Resolves to the base address, without a slash at the end, and the port. `v2Url` is the base address of
   * the V2 face: the same one, unless it has a port of its own. Error: `ADP_CONFIGURATION` where it cannot.
   */
  listen(): Promise<{ url: string; port: number; v2Url: string }>
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
 * `v2Port` (0: any free one) gives the V2 face a port of its own, which the first port then does not serve, with faults of its own; `v2`
 * { keys, tokens, callsPerSecond, latencyMs } is its gateway: keys and tokens default to those above.
 *
 * Errors: `ADP_USAGE` for wrong options, and for a database file that cannot be opened or has other content.
 */
export function createSandbox(options: SandboxOptions = {}, hooks: SandboxHooks = {}): Sandbox {
  const settings = readOptions(options)
  const clock = createClock(settings.now === undefined ? undefined : Date.parse(settings.now))
  const school = openSchool(settings, () => clock.now(), hooks.onProgress ?? (() => undefined))
  const service = createService(school, toSwitches(settings))
  const plans: FaultPlan[] = []
  const reset = (): void => {
    school.undoWrites()
    for (const faults of plans) faults.clear()
    school.storedValues.set(undefined)
    school.legacyForm.set(undefined)
    school.differences.clear()
  }
  /** The application of one port; each has faults of its own. */
  const createPortApp = ({ stream, serves, ...parts }: PortParts): RequestListener => {
    const faults = createFaultPlan(createRandom(settings.seed, stream))
    plans.push(faults)
    return createServer({
      ...parts,
      service: service({
        serves,
        disturb: (method, path) => joinFaults(faults.strikeInside({ method, path })).reply,
      }),
      control: settings.control ? createControlRoutes({ school, clock, faults, reset }) : undefined,
      maxBodyBytes: settings.maxBodyBytes,
      contextUrl: settings.contextUrl,
      strike: (method, path) => faults.strike({ method, path }),
      staleAfter: () => faults.seqWhenSet(),
      onError: hooks.onError ?? (() => undefined),
    })
  }
  const { host, port, v2Port, v2 } = settings
  const { admit, admitV2, issueToken } = createSecurity(settings, school.ids.guid('user', 0), () =>
    clock.now(),
  )
  const isWhole = v2Port === undefined
  const main = createHttpPort(
    createPortApp({
      ...{ stream: 'faults', admit, issueToken, latencyMs: 0 },
      serves: (route) => isWhole || portOf(route) === 'V3',
    }),
    { host, port, option: hooks.portOption },
  )
  const legacy = isWhole
    ? undefined
    : createHttpPort(
        createPortApp({
          ...{ stream: 'v2 faults', admit: admitV2, issueToken: undefined, latencyMs: v2?.latencyMs ?? 0 },
          serves: (route) => portOf(route) === 'V2',
        }),
        { host, port: v2Port, option: '--v2-port' },
      )
  return {
    listen: async () => {
      const opened = await main.listen()
      return { ...opened, v2Url: (await legacy?.listen())?.url ?? opened.url }
    },
    close: async () => {
      await Promise.all([main.close(), legacy?.close()])
      school.database.close()
    },
  }
}

/** The properties of one port: its random stream, its gateway, and the resources that it has. */
type PortParts = Pick<ServerParts, 'admit' | 'issueToken' | 'latencyMs'> &
  Pick<ServicePort, 'serves'> & { readonly stream: string }

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
