import { createHmac, randomBytes } from 'node:crypto'

import { AdapterError } from '../errors.ts'
import { type Ageing, openAgeing } from './ageing.ts'
import { type DamagedRows, findDamagedRows } from './check-rows.ts'
import { type KeptLimits, keptLimits } from './kept-bytes.ts'
import { takeLease } from './lease/lease.ts'
import { ownIdentity } from './lease/process-identity.ts'
import { findContradiction } from './high-water/check-mark.ts'
import { migrate, type OpenedTables } from './schema/migrate.ts'
import { createSqlJournal, type DurableJournal, type JournalEvents } from './sql-journal.ts'
import { type WallClock, backgroundClock } from '../clock.ts'
import { damagedStore } from './store/damage.ts'
import { createKeyHash } from './store/hash-key.ts'
import { checkKeys } from './store/key-check.ts'
import { openMacKey } from './store/mac-key.ts'
import { openStore } from './store/open-store.ts'
import type { Unsealing } from './store/seal.ts'
import type { JournalKey, Store } from './store/store.ts'

export interface JournalOptions {
  /** `sqlite:./data/journal.db`, or `postgres://user:password@host/database`. */
  readonly url: string
  /** The first encrypts, each decrypts. None: nothing is encrypted, and no credentials are kept. */
  readonly keys?: readonly JournalKey[]
  /** Retention period of requests and answers; as long, a repeated batch is answered from the journal. Default 24 hours. */
  readonly replayForMs?: number
  /** Retention period of the states of records. Default 90 days. */
  readonly keepRecordsMs?: number
  /** Length of a lease: an instance that does not renew it counts as dead. Default 10 s. */
  readonly leaseMs?: number
  /** Timeout of `begin` and `reopen` while the journal cannot be written. Default 5 s. */
  readonly timeoutMs?: number
  /** Where a PostgreSQL journal keeps its mark. */
  readonly markFile?: string | undefined
  /** With keys: whether rows that are not encrypted are read. Default `refuse`; `accept` until rows from before the keys are deleted. */
  readonly plaintext?: 'accept' | 'refuse'
  /** Timeout of `settle`. Default 60 s. */
  readonly settleTimeoutMs?: number
  /** Default `keptLimits`. */
  readonly kept?: KeptLimits
  readonly clock?: WallClock
  readonly events?: JournalEvents
}

const HOUR_MS = 3_600_000
const REPLAY_MS = 24 * HOUR_MS
const TIMEOUT_MS = 5_000

/**
 * Opens a journal, creating its tables where there are none, and takes a lease in it. Errors: `ADP_CONFIGURATION` where the
 * address, the keys or the version do not fit; `ADP_JOURNAL_UNAVAILABLE` where it cannot be reached or written.
 */
export async function openJournal(options: JournalOptions): Promise<DurableJournal> {
  const { url, timeoutMs = TIMEOUT_MS, replayForMs = REPLAY_MS, clock = backgroundClock, markFile } = options
  const store = openStore(url, { timeoutMs, replayForMs, wallMs: () => clock.wallMs(), markFile })
  return openJournalOn(store, options)
}

/** `openJournal` on a store that was created already; it is closed with the journal, and where this fails. */
export async function openJournalOn(
  store: Store,
  options: Omit<JournalOptions, 'url'>,
): Promise<DurableJournal> {
  const { keys = [], replayForMs = REPLAY_MS, leaseMs = 10_000, clock = backgroundClock } = options
  const plaintextAccepted = options.plaintext === 'accept'
  try {
    const { salt, readBackUntilMs, readBackFromAgeMs } = await openTables(
      store,
      { keys, plaintextAccepted },
      clock.wallMs() + replayForMs,
    )
    const ageing = await openAgeing({ store, clock, replayForMs })
    const damaged = await checkRows(store, clock.wallMs() - replayForMs, clock.wallMs(), ageing)
    if (damaged.batches > 0) options.events?.rowsDamaged(damaged.batches)
    const macKey = await openMacKey(store.exclusively, keys, salt, { forInstance: true })
    const identity = ownIdentity()
    return await createSqlJournal({
      store,
      unsealing: { keys, plaintextAccepted },
      hashKeys: createKeyHash(salt),
      macKey,
      linkSecret: createHmac('sha256', salt).update('markbridge next links').digest(),
      readBack: {
        untilMs: Math.max(readBackUntilMs, damaged.batches > 0 ? damaged.receivedMs + replayForMs : 0),
        untilAgeMs: readBackFromAgeMs === undefined ? 0 : readBackFromAgeMs + replayForMs,
        untilForgotten: damaged.newest,
      },
      clock,
      ageing,
      identity,
      leaseMs,
      takeLease: (watch) => takeLease({ store, clock, leaseMs, identity, ...watch }),
      timeoutMs: options.timeoutMs ?? TIMEOUT_MS,
      settleTimeoutMs: options.settleTimeoutMs ?? 60_000,
      retention: {
        replayForMs,
        keepRecordsMs: Math.max(replayForMs, options.keepRecordsMs ?? 90 * 24 * HOUR_MS),
      },
      kept: options.kept ?? keptLimits,
      purgeEveryMs: HOUR_MS,
      events: options.events,
    })
  } catch (error) {
    await store.close()
    if (error instanceof AdapterError) throw error
    const { kind, message } = store.toStoreError(error)
    if (kind === 'damaged') throw damagedStore(store.place, message, error)
    throw new AdapterError(
      'ADP_JOURNAL_UNAVAILABLE',
      `The journal ${store.place} cannot be opened: ${message}.`,
      {
        cause: error,
      },
    )
  }
}

/**
 * Checks that the journal is the one of its mark, brings its tables up to date, and hands the store what it needs to write them.
 * Errors: `ADP_JOURNAL_DAMAGED` with nothing changed; those of `migrate` and `checkKeys`.
 */
async function openTables(
  store: Store,
  { keys, plaintextAccepted }: Unsealing,
  replayUntilMs: number,
): Promise<OpenedTables> {
  checkKeyLengths(keys)
  expectSound(store, await store.findDamage())
  const opened = await migrate(store.exclusively, store.dialect, {
    newSalt: () => randomBytes(16),
    replayUntilMs,
    check: async (db) => expectSound(store, await findContradiction(db, store.dialect, store.mark)),
  })
  await checkKeys(store.exclusively, keys, opened.salt, plaintextAccepted)
  await store.prepare({ salt: opened.salt, mark: opened.mark, key: keys[0] })
  return opened
}

/** The newest batches that are checked at the start, which takes a second or two. */
const CHECKED_BATCHES = 10_000

/**
 * Checks the rows of batches that may come again, as far as there are not too many. A damaged one may not be recognised any longer, so
 * until it is forgotten new records are looked for before they are posted.
 */
const checkRows = (
  { db }: Store,
  sinceMs: number,
  nowMs: number,
  ageing: Pick<Ageing, 'forgottenBatch'>,
): Promise<DamagedRows> =>
  findDamagedRows(db, { sinceMs, afterBatch: ageing.forgottenBatch(), nowMs, batches: CHECKED_BATCHES })

function expectSound(store: Store, damage: string | undefined): void {
  if (damage !== undefined) throw damagedStore(store.place, damage)
}

function checkKeyLengths(keys: readonly JournalKey[]): void {
  const wrong = keys.find(({ key }) => key.byteLength !== 32)
  if (wrong === undefined) return
  throw new AdapterError('ADP_CONFIGURATION', `The journal key ${wrong.id} must have 32 bytes.`)
}
