import type { Config, ConfigChanges } from '../config/index.ts'
import { AdapterError, type ErrorDetail } from '../errors.ts'
import type { Events } from '../observability/events.ts'
import type { ReloadMetrics } from '../observability/metrics.ts'

/** Applies a configuration in this process or in all workers. If the promise rejects, the running configuration is still in effect. */
export type ApplyConfig = (next: Config) => Promise<ConfigChanges>

export interface ReloadReport {
  reloaded(changes: ConfigChanges): void
  refused(faults: readonly ErrorDetail[]): void
}

type Load = () => Config | Promise<Config>
/** Loads a configuration and applies it. If the promise rejects, the running configuration is still in effect. */
export type Reload = (load: Load) => Promise<ConfigChanges>

/** Creates the reload. Calls during a reload share one more reload with the last `load`, so that the latest file takes effect. */
export function createReload(apply: ApplyConfig, report?: ReloadReport): Reload {
  let running: Promise<unknown> | undefined
  let waiting: Promise<ConfigChanges> | undefined
  let last: Load | undefined
  const reload = async (load: Load): Promise<ConfigChanges> => {
    try {
      const changes = await apply(await load())
      report?.reloaded(changes)
      return changes
    } catch (cause) {
      report?.refused(faultsOf(cause))
      throw cause
    }
  }
  const begin = (load: Load): Promise<ConfigChanges> => {
    const own = reload(load)
    running = own.catch(() => undefined)
    return own
  }
  return (load) => {
    last = load
    if (running === undefined) return begin(load)
    return (waiting ??= running.then(() => {
      waiting = undefined
      return begin(last ?? load)
    }))
  }
}

/** Returns the faults of an error, or the error as the only fault. Hides the message of an unexpected error. */
function faultsOf(cause: unknown): readonly ErrorDetail[] {
  if (!(cause instanceof AdapterError))
    return [
      {
        code: 'ADP_INTERNAL',
        message:
          'The reload failed because of an internal error. The running configuration stays in effect. The log has the details.',
      },
    ]
  return cause.details.length > 0 ? cause.details : [{ code: cause.code, message: cause.message }]
}

/** The maximum number of faults in a log line. The line also contains the number of all faults. */
const MAX_FAULTS = 100

export function createReloadReport(
  events: Pick<Events, 'configReloaded' | 'configRefused'>,
  metrics: ReloadMetrics,
): ReloadReport {
  return {
    reloaded: (changes) =>
      events.configReloaded({ revision: metrics.reloaded(changes.needsRestart.length), ...changes }),
    refused: (faults) => {
      metrics.refused()
      events.configRefused({ count: faults.length, faults: faults.slice(0, MAX_FAULTS) })
    },
  }
}
