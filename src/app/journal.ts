import { acceptsPlaintext, type Config, journalKeysOf, journalUrlOf } from '../config/index.ts'
import { AdapterError } from '../errors.ts'
import type { Duty, Heartbeat } from '../heartbeat.ts'
import {
  createNoJournal,
  type DurableJournal,
  type Journal,
  type JournalDatabase,
  type JournalOptions,
  openJournal,
  type SharedRateLimit,
} from '../journal/index.ts'
import type { Events } from '../observability/events.ts'
import { createEvidenceStore } from '../rollout/evidence/evidence-store.ts'
import { createRolloutStore } from '../rollout/store/rollout-store.ts'
import { formatProfile, joinProfiles, parseProfile } from '../translate/index.ts'
import type { RateSlots } from '../upstream/index.ts'
import type { EchoLearning } from '../writes/context.ts'
import { highWaterFileOf } from './stages.ts'

/** Opens the configured journal, and connects `stores` with the journal. Throws the errors of `openJournal`. */
export async function openConfiguredJournal(
  parts: {
    readonly config: Pick<Config, 'journal'>
    readonly leaseMs: number
    readonly heartbeat: Pick<Heartbeat, 'add'>
    readonly events: Events
    readonly stores: Pick<SharedStores, 'use'> | undefined
  },
  trace?: JournalOptions['trace'],
): Promise<Journal> {
  const { leaseMs, heartbeat, events, stores } = parts
  const config = parts.config.journal
  const url = journalUrlOf(config)
  if (url === 'none') return createNoJournal()
  const { replayForMs, keepRecordsMs } = config
  const journal = await openJournal({
    url,
    keys: journalKeysOf(config),
    replayForMs,
    keepRecordsMs,
    leaseMs,
    highWaterFile: highWaterFileOf(config),
    trace,
    plaintext: acceptsPlaintext(config) ? 'accept' : 'refuse',
    events: {
      failed: (reason) => events.journalFailed({ reason }),
      recovered: () => events.journalRecovered(),
      leaseLost: () => events.journalLeaseLost(),
    },
  })
  stores?.use(journal)
  heartbeat.add(...journal.duties)
  return journal
}

/** The stores that all instances of a journal share. Until the journal is open, calls reject with `ADP_JOURNAL_UNAVAILABLE`. */
export type SharedStores = ReturnType<typeof createSharedStores>

export function createSharedStores() {
  let journal: Pick<DurableJournal, 'rateLimit' | 'database' | 'linkSecret'> | undefined
  const opened = (): NonNullable<typeof journal> => {
    if (journal !== undefined) return journal
    throw new AdapterError(
      'ADP_JOURNAL_UNAVAILABLE',
      'The journal has not been reached since the start. Nothing was stored. Check that the database is running.',
    )
  }
  const database: JournalDatabase = {
    get db() {
      return opened().database.db
    },
    get dialect() {
      return opened().database.dialect
    },
    get secret() {
      return opened().database.secret
    },
    nowMs: () => opened().database.nowMs(),
    ask: async (question) => opened().database.ask(question),
  }
  /** Returns `undefined` if the journal fails. The journal reports its own failure. */
  const ask = async <Result>(
    question: (rateLimit: SharedRateLimit) => Promise<Result>,
  ): Promise<Result | undefined> => {
    try {
      return await question(opened().rateLimit)
    } catch {
      return undefined
    }
  }
  return {
    use: (next: NonNullable<typeof journal>): void => {
      journal = next
    },
    rollout: createRolloutStore(database),
    evidence: createEvidenceStore(database),
    /** Returns the rate slots of one subscription key. While the journal cannot be reached, each instance limits only its own calls. */
    slotsOf: (keyHash: string): RateSlots => ({
      aloneSinceMs: () => journal?.rateLimit.aloneSinceMs(),
      reserve: (limit, calls) => ask((rateLimit) => rateLimit.reserve(keyHash, limit, calls)),
      pauseFor: (ms) => {
        ask((rateLimit) => rateLimit.pauseFor(keyHash, ms)).catch(() => undefined)
      },
      sincePauseMs: () => ask((rateLimit) => rateLimit.sincePauseMs(keyHash)),
    }),
    /** Returns the secret from which the canary position of each unit is derived, or `undefined` before the journal is open. */
    secret: () => journal?.linkSecret,
  }
}

const SAVE_EVERY_MS = 5_000
/** The number of calls of the duty after which the stored profile is read again, because other instances change it too. */
const LOAD_EVERY = 12

/**
 * Creates the keeper of the echo profile (how a V3 service changes stored values), which loads and saves the profile. The keeper never
 * delays a request, and retries after a failure.
 */
export function createEchoKeeper(
  echoes: Pick<EchoLearning, 'profile' | 'replaceProfile'>,
  journal: Pick<Journal, 'readNote' | 'writeNote'>,
  baseUrl: URL,
) {
  const name = `echo profile of ${baseUrl.origin}${baseUrl.pathname}`
  let kept = echoes.profile()
  let rounds = 0
  const synchronise = async (): Promise<void> => {
    const text = await journal.readNote(name)
    const stored = text === undefined ? undefined : parseProfile(text)
    const own = echoes.profile()
    const joined = stored === undefined ? own : joinProfiles(own, stored)
    if (joined !== own) echoes.replaceProfile(joined)
    if (formatProfile(joined) !== text) await journal.writeNote(name, formatProfile(joined))
    kept = joined
  }
  const load = (): Promise<void> => synchronise().catch(() => undefined)
  const act = async (): Promise<void> => {
    rounds += 1
    if (echoes.profile() !== kept || rounds % LOAD_EVERY === 0) await synchronise()
  }
  const duties: readonly Duty[] = [{ name: 'echo profile', everyMs: SAVE_EVERY_MS, atStop: true, act }]
  return { duties, load }
}
