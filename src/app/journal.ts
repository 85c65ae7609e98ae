import { type Clock, createPeriodicTask, type PeriodicTask } from '../clock.ts'
import { acceptsPlaintext, type Config, journalKeysOf, journalUrlOf } from '../config/index.ts'
import { AdapterError } from '../errors.ts'
import {
  createLateJournal,
  createNoJournal,
  type Journal,
  openJournal,
  type SharedRateLimit,
} from '../journal/index.ts'
import type { Events } from '../observability/events.ts'
import { formatProfile, joinProfiles, parseProfile } from '../translate/index.ts'
import type { RateSlots } from '../upstream/index.ts'
import type { EchoLearning } from '../writes/index.ts'
import type { LateRolloutStore } from './create-stages.ts'
import { markFileOf } from './stage-file.ts'

/** Opens the journal that the configuration names, and shares with those who share it the pace and the stages. Errors: those of `openJournal`. */
export async function openConfiguredJournal(
  { journal: config, tuning }: Pick<Config, 'journal' | 'tuning'>,
  events: Events,
  sharing: RateSharing,
  rollout: Pick<LateRolloutStore, 'use'>,
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
  sharing.use(journal.rateLimit)
  rollout.use(journal)
  return journal
}

/**
 * Opens a journal for an adapter that also serves from V2, which needs none: where its store cannot be reached now, it is opened as soon
 * as it can be. Errors: those of `open`, except `ADP_JOURNAL_UNAVAILABLE`.
 */
export async function openJournalLater(
  open: () => Promise<Journal>,
  events: Pick<Events, 'journalFailed' | 'journalRecovered'>,
  clock: Clock,
): Promise<Journal> {
  try {
    return await open()
  } catch (cause) {
    if (!(cause instanceof AdapterError) || cause.code !== 'ADP_JOURNAL_UNAVAILABLE') throw cause
    let shown = cause.message
    events.journalFailed({ reason: shown })
    return createLateJournal({
      open,
      clock,
      onFailed: (failure) => {
        const reason = failure instanceof AdapterError ? failure.message : 'unexpected error'
        if (reason !== shown) events.journalFailed({ reason })
        shown = reason
      },
      onOpened: () => events.journalRecovered(),
    })
  }
}

/** The rate limit that instances keep together, through the journal that they share. */
interface RateSharing {
  /** The slots of one subscription key. */
  readonly slotsOf: (keyHash: string) => RateSlots
  /** The store itself, for what must not go on without it. Rejects before it is set. */
  readonly store: SharedRateLimit
  /** Sets the store of the slots; before that, and while it cannot be reached, each instance limits its own calls. */
  use(store: SharedRateLimit): void
}

/** Creates it for a journal that is opened later. */
export function createRateSharing(): RateSharing {
  let store: SharedRateLimit | undefined
  const ask = async <Result>(question: (opened: SharedRateLimit) => Promise<Result>): Promise<Result> => {
    if (store !== undefined) return question(store)
    throw new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'The journal has not been reached since the start.')
  }
  return {
    // The journal reports its own failure; the limit of this instance applies meanwhile.
    slotsOf: (keyHash) => ({
      reserve: (limit, calls) =>
        store?.reserve(keyHash, limit, calls).catch(() => undefined) ?? Promise.resolve(undefined),
      pauseFor: (ms) => {
        store?.pauseFor(keyHash, ms).catch(() => undefined)
      },
      sincePauseMs: () => ask((opened) => opened.sincePauseMs(keyHash)).catch(() => undefined),
    }),
    store: {
      reserve: (name, limit, calls) => ask((opened) => opened.reserve(name, limit, calls)),
      pauseFor: (name, ms) => ask((opened) => opened.pauseFor(name, ms)),
      sincePauseMs: (name) => ask((opened) => opened.sincePauseMs(name)),
    },
    use: (shared) => {
      store = shared
    },
  }
}

/** Keeps the profile of a service in the journal: saves and loads from time to time, and saves the changes at its end. */
export interface EchoKeeper extends PeriodicTask {
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
