import type { Config, ConfigChanges } from '../config/index.ts'
import { AdapterError, type ErrorDetail } from '../errors.ts'
import type { Events } from '../observability/events.ts'
import type { ReloadMetrics } from '../observability/metrics.ts'

/** Makes a configuration the running one, in this process or in all workers, or rejects with why and changes nothing. */
export type ApplyConfig = (next: Config) => Promise<ConfigChanges>

/** Receives the result of each reload. */
export interface ReloadReport {
  reloaded(changes: ConfigChanges): void
  refused(faults: readonly ErrorDetail[]): void
}

type Load = () => Config | Promise<Config>
/** Loads a configuration and makes it the running one, or leaves everything as it is and rejects with why. */
export type Reload = (load: Load) => Promise<ConfigChanges>

/**
 * Creates the reload, which runs one at a time. Calls during a reload lead to one more after it, with the last `load`, so that
 * the latest file is in use in the end.
 */
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

/** An error without a list of its own is one fault; one that was not foreseen shows no text. */
function faultsOf(cause: unknown): readonly ErrorDetail[] {
  if (!(cause instanceof AdapterError)) return [{ code: 'ADP_INTERNAL', message: 'The reload failed.' }]
  return cause.details.length > 0 ? cause.details : [{ code: cause.code, message: cause.message }]
}

/** A file may have very many faults: the log has the first of them and their number. */
const MAX_FAULTS = 100

/** Creates the report of reloads in log and metrics. */
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
