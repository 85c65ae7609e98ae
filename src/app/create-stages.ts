import type { Config } from '../config/index.ts'
import { AdapterError } from '../errors.ts'
import type { DurableJournal, Journal } from '../journal/index.ts'
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
import { backgroundClock } from '../clock.ts'
import { createStageFile, stageFileOf, stageJournalOf } from './stage-file.ts'

/** The store of stages in a journal that is opened later. */
export interface LateRolloutStore {
  /** Sets the journal; before that the store cannot be reached. */
  use(journal: DurableJournal): void
  readonly store: Pick<
    RolloutStore,
    | 'snapshot'
    | 'begin'
    | 'acknowledge'
    | 'leave'
    | 'apply'
    | 'note'
    | 'noteUnrecorded'
    | 'readEvidence'
    | 'updateEvidence'
  >
  /** What comparison has seen, in the same journal. */
  readonly evidence: Pick<EvidenceStore, 'key' | 'add' | 'destroyExpired'>
  /** Gives units their places; undefined before the journal is open. */
  secret(): Uint8Array | undefined
}

export function createLateRolloutStore(): LateRolloutStore {
  interface Opened {
    readonly store: RolloutStore
    readonly evidence: EvidenceStore
    readonly secret: Uint8Array
  }
  let opened: Opened | undefined
  const ask = <Result>(question: (store: RolloutStore) => Promise<Result>): Promise<Result> =>
    askOpened(({ store }) => question(store))
  const askOpened = async <Result>(question: (parts: Opened) => Promise<Result>): Promise<Result> => {
    if (opened !== undefined) return question(opened)
    throw new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'The journal has not been reached since the start.')
  }
  return {
    use: (journal) => {
      const { database, linkSecret } = journal
      opened = {
        store: createRolloutStore(database),
        evidence: createEvidenceStore(database),
        secret: linkSecret,
      }
    },
    store: {
      snapshot: (known) => ask((store) => store.snapshot(known)),
      begin: (partner, setting) => ask((store) => store.begin(partner, setting)),
      acknowledge: (instance, rows) => ask((store) => store.acknowledge(instance, rows)),
      noteUnrecorded: (partner, agoMs) => ask((store) => store.noteUnrecorded(partner, agoMs)),
      leave: (instance) => ask((store) => store.leave(instance)),
      apply: (change, action) => ask((store) => store.apply(change, action)),
      note: (partner, action, by, reason) => ask((store) => store.note(partner, action, by, reason)),
      readEvidence: (name) => ask((store) => store.readEvidence(name)),
      updateEvidence: (name, update) => ask((store) => store.updateEvidence(name, update)),
    },
    evidence: {
      key: (scope) => askOpened(({ evidence }) => evidence.key(scope)),
      add: (key, entries) => askOpened(({ evidence }) => evidence.add(key, entries)),
      destroyExpired: () => askOpened(({ evidence }) => evidence.destroyExpired()),
    },
    secret: () => opened?.secret,
  }
}

export interface StageParts {
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

/** A held write waits for longer than a change may take, with what is read and committed around that. */
const BEYOND_DRAIN_MS = 5_000

/** Creates the stages of one instance, over the store in its journal. */
export function createStages({ config, late, journal, registry, events, metrics }: StageParts): StoredStages {
  const { rollout, tuning } = config
  const staleAfterMs = tuning.leaseMs * COUNTED_LEASES
  return createStoredStages({
    store: late.store,
    instance: () => journal.lease(),
    renewLease: () => journal.renewLease(),
    clock: backgroundClock,
    kept: createStageFile(stageFileOf(config.journal), stageJournalOf(config.journal)),
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
    // The stage of the file says so already (to-file-stage).
    unknownBeginAt: undefined,
    staleAfterMs,
    pollMs: Math.min(500, staleAfterMs / 4),
    patienceMs: Math.min(1_000, staleAfterMs / 2),
    resendWindowMs: rollout.resendWindowMs,
    holdMs: tuning.stageDrainMs + BEYOND_DRAIN_MS,
  })
}
