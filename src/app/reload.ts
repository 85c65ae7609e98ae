import type { Config, ConfigChanges } from '../config/index.ts'
import { AdapterError, type ErrorDetail } from '../errors.ts'
import type { Events } from '../observability/events.ts'
import type { ReloadMetrics } from '../observability/metrics.ts'

/** A configuration that can take effect at once, everywhere. */
export interface PreparedReload {
  readonly changes: ConfigChanges
  /** Takes effect for requests that come from now on; cannot fail. */
  readonly commit: () => void | Promise<void>
}

/** The target of a reload: this process, or all workers. */
export interface ReloadTarget {
  /** Checks and builds what the configuration needs, and changes nothing. Rejects with why it cannot take effect. */
  readonly prepare: (next: Config) => Promise<PreparedReload>
}

/** Receives the result of each reload. */
export interface ReloadReport {
  reloaded(changes: ConfigChanges): void
  refused(faults: readonly ErrorDetail[]): void
}

type Load = () => Config | Promise<Config>
/** Loads a configuration and makes it the running one, or leaves everything as it is and rejects with why. */
export type Reload = (load: Load) => Promise<ConfigChanges>

/**
 * Creates the reload of a target: one at a time. Calls during a reload lead to one more after it, with the last `load`, so that
 * the latest file is in use in the end.
 */
export function createReload(target: ReloadTarget, report?: ReloadReport): Reload {
  let running: Promise<unknown> | undefined
  let waiting: Promise<ConfigChanges> | undefined
  let last: Load | undefined
  const reload = async (load: Load): Promise<ConfigChanges> => {
    try {
      const prepared = await target.prepare(await load())
      await prepared.commit()
      report?.reloaded(prepared.changes)
      return prepared.changes
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
