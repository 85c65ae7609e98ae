import { createHmac } from 'node:crypto'

import { backgroundClock, type WallClock } from '../clock.ts'
import { AdapterError } from '../errors.ts'
import { openAgeing } from './ageing.ts'
import { findContradiction, keepPlace, readHighWater } from './contradictions.ts'
import type { HighWaterMark } from './high-water.ts'
import { createKeyHash } from './hashes.ts'
import { ownIdentity } from './instances.ts'
import { type KeptLimits, keptLimits } from './kept-bytes.ts'
import { checkKeys, openMacKey } from './keys.ts'
import { takeLease } from './lease.ts'
import { readMeta } from './meta.ts'
import { openStore } from './open-store.ts'
import { migrate } from './schema.ts'
import type { JournalKey } from './seal.ts'
import { createSqlJournal, type DurableJournal, type JournalEvents } from './sql-journal.ts'
import type { Store } from './store.ts'
import { damagedStore } from './store-error.ts'

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
  const { url, timeoutMs = TIMEOUT_MS, clock = backgroundClock, markFile } = options
  const store = openStore(url, { timeoutMs, wallMs: () => clock.wallMs(), markFile })
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
    const { salt, mark, readBackUntilMs, readBackFromAgeMs } = await openTables(store)
    await checkKeys(store.exclusively, keys, salt, plaintextAccepted)
    await store.prepare({ salt, mark, key: keys[0], replayForMs })
    const identity = ownIdentity()
    return await createSqlJournal({
      store,
      unsealing: { keys, plaintextAccepted },
      hashKeys: createKeyHash(salt),
      macKey: await openMacKey(store.exclusively, keys, salt, { forInstance: true }),
      linkSecret: createHmac('sha256', salt).update('markbridge next links').digest(),
      readBack: {
        untilMs: readBackUntilMs,
        untilAgeMs: readBackFromAgeMs === undefined ? 0 : readBackFromAgeMs + replayForMs,
      },
      clock,
      ageing: await openAgeing({ store, clock, replayForMs }),
      identity,
      takeLease: (watch) => takeLease({ store, clock, leaseMs, identity, ...watch }),
      timeoutMs: options.timeoutMs ?? TIMEOUT_MS,
      settleTimeoutMs: options.settleTimeoutMs ?? 60_000,
      retention: {
        replayForMs,
        keepRecordsMs: Math.max(replayForMs, options.keepRecordsMs ?? 90 * 24 * HOUR_MS),
      },
      kept: options.kept ?? keptLimits,
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

/** The facts of a journal whose tables are up to date. */
interface OpenedTables {
  readonly salt: Uint8Array
  readonly mark: HighWaterMark
  /** Milliseconds since the epoch; 0: never. */
  readonly readBackUntilMs: number
  /** The age of the journal when what it may have lost was accepted, ms; undefined: nothing was. */
  readonly readBackFromAgeMs: number | undefined
}

/**
 * Checks that the journal is the one of its mark and brings its tables up to date. Errors: `ADP_JOURNAL_DAMAGED` with nothing
 * changed; those of `migrate`.
 */
async function openTables(store: Store): Promise<OpenedTables> {
  const expectSound = (damage: string | undefined): void => {
    if (damage !== undefined) throw damagedStore(store.place, damage)
  }
  expectSound(await store.findDamage())
  return store.exclusively(async (db) => {
    expectSound(await findContradiction({ ...store, db }))
    await migrate(db, store.dialect)
    await keepPlace(db, store.dialect, { anew: false })
    const fromAge = await readMeta(db, 'read_back_from_age')
    const mark = await readHighWater(db, store.dialect)
    return {
      salt: Buffer.from((await readMeta(db, 'salt')) ?? '', 'hex'),
      mark: mark ?? { identity: '', commits: new Map() },
      readBackUntilMs: Number((await readMeta(db, 'read_back_until')) ?? 0),
      readBackFromAgeMs: fromAge === undefined ? undefined : Number(fromAge),
    }
  })
}
