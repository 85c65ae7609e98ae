import { Gauge, type Registry } from 'prom-client'

import { createInstruments } from './instruments.ts'

/** The metrics of the configuration in use. */
export interface ReloadMetrics {
  /** Another configuration is in use; `pending` keys of it need a restart. Returns its revision. */
  reloaded(pending: number): number
  refused(): void
}

/** Creates the metrics of an adapter, whose configuration was loaded at `nowMs`. They belong to one process of it alone. */
export function createReloadMetrics(registry: Registry, nowMs: () => number): ReloadMetrics {
  const registers = [registry]
  const results = createInstruments(registry).counter('config_reloads_total', 'Reloads of the configuration.', ['result']) // prettier-ignore
  for (const result of ['reloaded', 'refused']) results.inc({ result }, 0)
  const gauge = (name: string, help: string, value: number): Gauge => {
    const made = new Gauge({ name: `markbridge_config_${name}`, help, registers })
    made.set(value)
    return made
  }
  let revision = 1
  const revisions = gauge('revision', 'Configurations that took effect, with the first.', revision)
  const loaded = gauge('loaded_timestamp_seconds', 'When the configuration in use was loaded.', nowMs() / 1_000) // prettier-ignore
  const needsRestart = gauge('needs_restart', 'Keys that take effect with the next start.', 0)
  return {
    reloaded: (pending) => {
      results.inc({ result: 'reloaded' })
      revision += 1
      revisions.set(revision)
      loaded.set(nowMs() / 1_000)
      needsRestart.set(pending)
      return revision
    },
    refused: () => results.inc({ result: 'refused' }),
  }
}
