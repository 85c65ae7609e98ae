import type { WallClock } from '../clock.ts'
import type { Config } from '../config/index.ts'
import type { Events } from '../observability/events.ts'
import type { Metrics } from '../observability/metrics.ts'
import {
  createLiveGuards,
  describeAlarm,
  type FileStage,
  goBack,
  GUARD_NAME,
  type LiveGuards,
  type RolloutStore,
} from '../rollout/index.ts'

export interface GuardParts {
  readonly store: Pick<RolloutStore, 'snapshot' | 'apply' | 'note' | 'readEvidence' | 'updateEvidence'>
  readonly settings: Config['rollout']['guards']
  /** The stage of the file, for a partner that the store does not know. */
  readonly fileStageOf: (partner: string) => FileStage | undefined
  readonly events: Pick<Events, 'guardActed' | 'guardsFailed'>
  readonly metrics: Pick<Metrics, 'guardCounted'>
  readonly clock: Pick<WallClock, 'nowMs' | 'after'>
  readonly nowMs: () => number
}

/** Creates the guards of all partners: what they do is in the audit trail, the log and the metrics. */
export function toGuards({
  store,
  settings,
  fileStageOf,
  events,
  metrics,
  clock,
  nowMs,
}: GuardParts): LiveGuards {
  return createLiveGuards({
    store,
    settings,
    clock,
    nowMs,
    goBack: (partner, revision, alarm) =>
      goBack(store, { partner, revision, fileStage: fileStageOf(partner), reason: describeAlarm(alarm) }),
    onAct: async (partner, { action, kind, test }, alarm) => {
      const { v3, v3Bad, v2, v2Bad } = alarm.figures
      events.guardActed({ partner, action, kind, test, heldBecause: alarm.heldBecause, v3, v3Bad, v2, v2Bad })
      if (action === 'hold') await store.note(partner, 'hold', GUARD_NAME, describeAlarm(alarm))
    },
    onWindows: (partner, windows) => {
      for (const { side, bad } of windows.flatMap(({ trials }) => trials)) {
        const kinds = Object.entries(bad).filter(([, isBad]) => isBad)
        metrics.guardCounted({ partner, side, bad: kinds.map(([kind]) => kind) })
      }
    },
    onFailure: (partner, code) => events.guardsFailed({ partner, code }),
  })
}
