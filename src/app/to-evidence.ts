import { backgroundClock } from '../clock.ts'
import type { OnCompared } from '../compare/compared-exchange.ts'
import {
  createLiveEvidence,
  isDifferent,
  isJudged,
  type LiveEvidence,
  noLiveEvidence,
} from '../compare/evidence/index.ts'
import type { Events } from '../observability/events.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { EvidenceStore, LiveGuards } from '../rollout/index.ts'

export interface EvidenceParts {
  /** Undefined: without a journal nothing is kept. */
  readonly store: Pick<EvidenceStore, 'key' | 'add' | 'destroyExpired'> | undefined
  /** Undefined until the adapter has started. */
  readonly guards: () => Pick<LiveGuards, 'compared'> | undefined
  readonly events: Pick<Events, 'evidenceNotKept'>
  readonly metrics: Pick<Metrics, 'evidenceKept'>
}

/** Takes what live comparison finds to the journal as evidence for the advice on the next step, and to the guards. */
export function toEvidence({ store, guards, events, metrics }: EvidenceParts): LiveEvidence {
  const kept =
    store === undefined
      ? noLiveEvidence
      : createLiveEvidence({
          store,
          clock: backgroundClock,
          onFailure: (partner, code) => events.evidenceNotKept({ partner, code }),
          onKept: metrics.evidenceKept,
        })
  const guard: OnCompared = ({ partner, unit, stage, revision, served, records }) => {
    // What V2 served was never a mark on V3; a request of which nothing is known speaks neither for V3 nor against it.
    if (served !== 'v3' || !records.some(isJudged)) return
    const mismatch = records.some(isDifferent)
    guards()?.compared({ partner, unit, stage, revision, records: records.length, mismatch })
  }
  return {
    ...kept,
    compared: (exchange) => {
      kept.compared(exchange)
      guard(exchange)
    },
  }
}
