import type { Events } from '../observability/events.ts'
import type { Metrics } from '../observability/metrics.ts'
import {
  badOf,
  createLiveGuards,
  describeAlarm,
  type FileStage,
  goBack,
  GUARD_NAME,
  type LiveGuards,
  type LiveGuardsOptions,
  type RolloutStore,
} from '../rollout/index.ts'

export interface GuardParts extends Pick<LiveGuardsOptions, 'action' | 'coolDownMs' | 'clock' | 'nowMs'> {
  readonly store: RolloutStore
  /** The stage of the file, for a partner that the store does not know. */
  readonly fileStageOf: (partner: string) => FileStage | undefined
  readonly events: Pick<Events, 'guardActed' | 'guardsFailed'>
  readonly metrics: Pick<Metrics, 'guardCounted'>
}

/** Creates the guards of all partners: what they do is in the audit trail, the log and the metrics. */
export function toGuards({ fileStageOf, events, metrics, ...options }: GuardParts): LiveGuards {
  const { store, action } = options
  return createLiveGuards({
    ...options,
    goBack: (partner, revision, figures) =>
      goBack(store, { partner, revision, fileStage: fileStageOf(partner), reason: describeAlarm(figures) }),
    onAct: async (partner, { v3, v2 }) => {
      const counts = { v3: v3.trials, v3Bad: badOf(v3), v2: v2.trials, v2Bad: badOf(v2) }
      events.guardActed({ partner, action, ...counts })
      if (action === 'hold') await store.note(partner, 'hold', GUARD_NAME, describeAlarm({ v3, v2 }))
    },
    onWindows: (partner, windows) => {
      for (const { side, outcome } of windows.flatMap(({ trials }) => trials))
        metrics.guardCounted({ partner, side, outcome })
    },
    onFailure: (partner, code) => events.guardsFailed({ partner, code }),
  })
}
