import { backgroundClock } from '../clock.ts'
import type { Config } from '../config/index.ts'
import { AdapterError } from '../errors.ts'
import type { DurableJournal, Journal, JournalDatabase } from '../journal/index.ts'
import type { Events } from '../observability/events.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { PartnerRegistry } from '../partners/index.ts'
import {
  createEvidenceStore,
  createRolloutStore,
  createStoredStages,
  type EvidenceStore,
  type RolloutStore,
  type StoredStages,
} from '../rollout/index.ts'
import { createStageFile } from './stage-file.ts'

/** The store of stages in a journal that is opened later. */
export interface LateRolloutStore {
  /** Sets the journal; before that the store cannot be reached. */
  use(journal: DurableJournal): void
  readonly store: RolloutStore
  /** What comparison has seen, in the same journal. */
  readonly evidence: EvidenceStore
  /** Gives units their places; undefined before the journal is open. */
  secret(): Uint8Array | undefined
}

export function createLateRolloutStore(): LateRolloutStore {
  let journal: DurableJournal | undefined
  const opened = (): JournalDatabase => {
    if (journal !== undefined) return journal.database
    throw new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'The journal has not been reached since the start.')
  }
  const database: JournalDatabase = {
    get db() {
      return opened().db
    },
    get dialect() {
      return opened().dialect
    },
    get macKey() {
      return opened().macKey
    },
    nowMs: () => opened().nowMs(),
    ask: async (question) => opened().ask(question),
  }
  return {
    use: (next) => {
      journal = next
    },
    store: createRolloutStore(database),
    evidence: createEvidenceStore(database),
    secret: () => journal?.linkSecret,
  }
}

interface StageParts {
  readonly config: Config
  readonly late: LateRolloutStore
  readonly journal: Pick<Journal, 'lease' | 'renewLease'>
  readonly registry: Pick<PartnerRegistry, 'partners'>
  readonly events: Pick<
    Events,
    'stageChanged' | 'stagesStale' | 'stagesFresh' | 'stagesNotKept' | 'trailDamaged'
  >
  readonly metrics: Pick<Metrics, 'stageHeld' | 'stageRefused'>
}

/**
 * Others count with an instance for 1.2 leases after its last renewal, and it holds its lease for 0.8 of one: so long after a read under a
 * lease that was held then they still count with it, also where it stands still.
 */
const COUNTED_LEASES = 0.38

/** Creates the stages of one instance, over the store in its journal. */
export function createStages({ config, late, journal, registry, events, metrics }: StageParts): StoredStages {
  return createStoredStages({
    store: late.store,
    instance: () => journal.lease(),
    renewLease: () => journal.renewLease(),
    clock: backgroundClock,
    kept: createStageFile(config.journal),
    secret: () => late.secret(),
    partners: () => registry.partners(),
    events: {
      changed: ({ from, ...event }) => events.stageChanged({ from: from ?? null, ...event }),
      held: (event) => metrics.stageHeld(event),
      refused: (event) => metrics.stageRefused(event),
      stale: () => events.stagesStale(),
      fresh: () => events.stagesFresh(),
      trailDamaged: () => events.trailDamaged(),
      keepFailed: () => events.stagesNotKept(),
    },
    staleAfterMs: config.tuning.leaseMs * COUNTED_LEASES,
    drainMs: config.tuning.stageDrainMs,
    resendWindowMs: config.rollout.resendWindowMs,
  })
}
