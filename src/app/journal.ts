import { type Clock, createPeriodicTask, type PeriodicTask } from '../clock.ts'
import { acceptsPlaintext, type Config, journalKeysOf, journalUrlOf } from '../config/index.ts'
import { AdapterError } from '../errors.ts'
import {
  createNoJournal,
  type DurableJournal,
  type Journal,
  type JournalDatabase,
  openJournal,
  type SharedRateLimit,
} from '../journal/index.ts'
import type { Events } from '../observability/events.ts'
import {
  createEvidenceStore,
  createRolloutStore,
  type EvidenceStore,
  type RolloutStore,
} from '../rollout/index.ts'
import { formatProfile, joinProfiles, parseProfile } from '../translate/index.ts'
import type { RateSlots } from '../upstream/index.ts'
import type { EchoLearning } from '../writes/index.ts'
import { markFileOf } from './stages.ts'

/** Opens the journal that the configuration names, and the stores that instances share in it. Errors: those of `openJournal`. */
export async function openConfiguredJournal(
  { journal: config, tuning }: Pick<Config, 'journal' | 'tuning'>,
  events: Events,
  stores: Pick<SharedStores, 'use'> | undefined,
): Promise<Journal> {
  const url = journalUrlOf(config)
  if (url === 'none') return createNoJournal()
  const { replayForMs, keepRecordsMs } = config
  const journal = await openJournal({
    url,
    keys: journalKeysOf(config),
    replayForMs,
    keepRecordsMs,
    leaseMs: tuning.leaseMs,
    markFile: markFileOf(config),
    plaintext: acceptsPlaintext(config) ? 'accept' : 'refuse',
    events: {
      failed: (reason) => events.journalFailed({ reason }),
      recovered: () => events.journalRecovered(),
      leaseLost: () => events.journalLeaseLost(),
    },
  })
  stores?.use(journal)
  return journal
}

/** What instances keep together in the database of their journal, which is opened after the parts that use it are made. */
export interface SharedStores {
  /** Sets the journal; before that, and without one, the stores reject with `ADP_JOURNAL_UNAVAILABLE`. */
  use(journal: Pick<DurableJournal, 'rateLimit' | 'database' | 'linkSecret'>): void
  readonly rollout: RolloutStore
  /** What comparison has seen. */
  readonly evidence: EvidenceStore
  readonly rateLimit: SharedRateLimit
  /** The slots of one subscription key: while the store cannot be reached, each instance limits its own calls. */
  readonly slotsOf: (keyHash: string) => RateSlots
  /** Gives units their places; undefined before the journal is open. */
  secret(): Uint8Array | undefined
}

/** Creates the stores of a journal that is opened later. */
export function createSharedStores(): SharedStores {
  let journal: Parameters<SharedStores['use']>[0] | undefined
  const opened = (): NonNullable<typeof journal> => {
    if (journal !== undefined) return journal
    throw new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'The journal has not been reached since the start.')
  }
  const database: JournalDatabase = {
    get db() {
      return opened().database.db
    },
    get dialect() {
      return opened().database.dialect
    },
    get macKey() {
      return opened().database.macKey
    },
    nowMs: () => opened().database.nowMs(),
    ask: async (question) => opened().database.ask(question),
  }
  const rateLimit: SharedRateLimit = {
    reserve: async (...asked) => opened().rateLimit.reserve(...asked),
    pauseFor: async (...asked) => opened().rateLimit.pauseFor(...asked),
    sincePauseMs: async (name) => opened().rateLimit.sincePauseMs(name),
  }
  return {
    use: (next) => {
      journal = next
    },
    rollout: createRolloutStore(database),
    evidence: createEvidenceStore(database),
    rateLimit,
    // The journal reports its own failure.
    slotsOf: (keyHash) => ({
      reserve: (limit, calls) => rateLimit.reserve(keyHash, limit, calls).catch(() => undefined),
      pauseFor: (ms) => void rateLimit.pauseFor(keyHash, ms).catch(() => undefined),
      sincePauseMs: () => rateLimit.sincePauseMs(keyHash).catch(() => undefined),
    }),
    secret: () => journal?.linkSecret,
  }
}

/** Keeps the profile of a service in the journal: saves and loads from time to time, and saves the changes at its end. */
interface EchoKeeper extends PeriodicTask {
  /** Loads the stored profile; leaves it empty where the journal cannot be read. */
  load(): Promise<void>
}

const SAVE_EVERY_MS = 5_000
/** Number of saves between two loads of the profile, which other instances change, too. */
const LOAD_EVERY = 12
const SAVE_STOP_MS = 5_000

/** Creates the keeper of one service's profile. It never delays a request, and retries after a failure. */
export function createEchoKeeper(
  echoes: Pick<EchoLearning, 'profile' | 'use'>,
  journal: Pick<Journal, 'readNote' | 'writeNote'>,
  baseUrl: URL,
  clock: Clock,
): EchoKeeper {
  const name = `echo profile of ${baseUrl.origin}${baseUrl.pathname}`
  let kept = echoes.profile()
  let rounds = 0
  const synchronise = async (): Promise<void> => {
    const text = await journal.readNote(name)
    const stored = text === undefined ? undefined : parseProfile(text)
    const own = echoes.profile()
    const joined = stored === undefined ? own : joinProfiles(own, stored)
    if (joined !== own) echoes.use(joined)
    if (formatProfile(joined) !== text) await journal.writeNote(name, formatProfile(joined))
    kept = joined
  }
  // The journal reports its own failures; unsaved changes are saved the next time.
  const load = (): Promise<void> => synchronise().catch(() => undefined)
  const task = createPeriodicTask({
    clock,
    everyMs: SAVE_EVERY_MS,
    stopMs: SAVE_STOP_MS,
    act: async ({ isLast }) => {
      rounds += 1
      if (echoes.profile() !== kept || (!isLast && rounds % LOAD_EVERY === 0)) await load()
    },
  })
  return { ...task, load }
}
