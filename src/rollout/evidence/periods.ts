import { createHmac, randomBytes } from 'node:crypto'

import { sql } from 'kysely'

import { AdapterError } from '../../errors.ts'
import { decrypt, encrypt, type JournalDatabase, type JournalKey } from '../../journal/index.ts'
import { type Db, forUpdate, readNow, rowsOf } from '../store/stage-rows.ts'
import type { PeriodKey } from './evidence-key.ts'
import { type EvidenceScope, readPairCounts } from './read-kept.ts'

const PERIOD_MS = 90 * 86_400_000
/** A period that begins more than this time in the future, in milliseconds, is destroyed: a clock was ahead, so its age is unknown. */
const AHEAD_MS = 86_400_000

interface PeriodRow {
  readonly id: number
  /** The number of the period within its scope, counted from 1. */
  readonly period: number
  readonly sinceMs: number
  /** The days whose records the period counts, from `from` up to but not including `until`. Each day belongs to one period. */
  readonly from: string
  readonly until: string
  /** The sealed key, or `null` if the key was destroyed together with its hashes. */
  readonly key: Uint8Array | null
}

/** Returns the current period of a scope with its key. Destroys an expired period and begins the next period. */
export async function openPeriod(database: JournalDatabase, scope: EvidenceScope): Promise<PeriodKey> {
  const { partner, stage, revision } = scope
  const { db } = database
  const nowMs = await readNow(database, db)
  const [latest] = await rowsOf(
    db,
    sql<PeriodRow>`select id, period, since_ms as "sinceMs", from_day as "from", until_day as until, hash_key as key
      from evidence_periods where partner = ${partner} and stage = ${stage} and revision = ${revision}
      order by period desc limit 1`,
  )
  if (latest !== undefined && latest.key !== null) {
    const { id, sinceMs, from, until, key } = latest
    if (nowMs < sinceMs + PERIOD_MS && sinceMs <= nowMs + AHEAD_MS) {
      const secret = await openKey(database, keyLocation(scope, latest.period), key)
      return { period: id, today: dayOf(nowMs), hour: hourOf(nowMs), days: [from, until], secret }
    }
    await destroyPeriod(database, id)
  }
  const period = (latest?.period ?? 0) + 1
  const key = await createKey(database, keyLocation(scope, period))
  // Inserts nothing if another instance has just begun the same period. The call below then returns that period.
  await sql`insert into evidence_periods
      (partner, stage, revision, period, since_ms, last_ms, from_day, until_day, hash_key)
    values (${partner}, ${stage}, ${revision}, ${period}, ${nowMs}, ${nowMs}, ${latest?.until ?? ''}, ${dayOf(nowMs + PERIOD_MS)}, ${key})
    on conflict (partner, stage, revision, period) do nothing`.execute(db)
  return openPeriod(database, scope)
}

const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10)

const hourOf = (ms: number): string => new Date(ms).toISOString().slice(11, 13)

/** Returns the location to which a sealed key is bound, so that the key cannot be moved to another period. */
const keyLocation = ({ partner, stage, revision }: EvidenceScope, period: number): string =>
  `${partner}/${stage}/${revision}/${period}`

const KEY_BYTES = 32

const createKey = ({ secret }: JournalDatabase, place: string): Promise<Buffer> =>
  encrypt(randomBytes(KEY_BYTES), sealingKey(secret), place)

/** Decrypts the key of a period. Throws `ADP_JOURNAL_DAMAGED` if the sealed key was altered. */
function openKey({ secret }: JournalDatabase, place: string, sealed: Uint8Array): Promise<Uint8Array> {
  return decrypt(sealed, sealingKey(secret), place).catch((cause: unknown) => {
    const message = `The key of the evidence of ${place} in the journal was altered. Nothing was read or added. Restart the evidence at another revision of the stage.`
    throw new AdapterError('ADP_JOURNAL_DAMAGED', message, { cause })
  })
}

/** Derives, from the secret of the journal, the key that encrypts the keys of periods. The secret stays when the journal's keys change. */
const sealingKey = (secret: Uint8Array): JournalKey => ({
  id: 'evidence',
  key: createHmac('sha256', secret).update('markbridge evidence').digest(),
})

export async function destroyPeriods(database: JournalDatabase): Promise<number> {
  const nowMs = database.nowMs()
  const expired = await rowsOf(
    database.db,
    sql<PeriodRow>`select id from evidence_periods where hash_key is not null
      and (since_ms <= ${nowMs} - ${sql.lit(PERIOD_MS)} or since_ms > ${nowMs} + ${sql.lit(AHEAD_MS)})`,
  )
  for (const { id } of expired) await destroyPeriod(database, id)
  return expired.length
}

/** Replaces the hashes of a period by their sums, and destroys its key. Does nothing if the key is already destroyed. */
async function destroyPeriod(database: JournalDatabase, id: number): Promise<void> {
  await overwriting(database, async (transaction) => {
    if (!(await lockPeriod(database, transaction, id))) return
    const kept = JSON.stringify(await readPairCounts(transaction, id))
    await sql`delete from evidence_hashes where period = ${id}`.execute(transaction)
    await sql`update evidence_periods set hash_key = null, kept = ${kept} where id = ${id}`.execute(
      transaction,
    )
  })
  // Truncates the write-ahead log of SQLite, which still contains the pages with the deleted hashes.
  if (database.dialect === 'sqlite') await sql`PRAGMA wal_checkpoint(TRUNCATE)`.execute(database.db)
}

/** Locks a period, so that two instances change the period one after the other. Returns false if its key was destroyed. */
export async function lockPeriod(database: JournalDatabase, db: Db, id: number): Promise<boolean> {
  const [row] = await rowsOf(
    db,
    sql<PeriodRow>`select hash_key as key from evidence_periods where id = ${id} ${forUpdate(database)}`,
  )
  return row !== undefined && row.key !== null
}

/** Runs a transaction that leaves no bytes of deleted rows in the file of SQLite. PostgreSQL keeps such bytes until its next vacuum. */
export function overwriting<Result>(
  { db, dialect }: JournalDatabase,
  work: (transaction: Db) => Promise<Result>,
): Promise<Result> {
  return db.transaction().execute(async (transaction) => {
    if (dialect === 'postgres') return work(transaction)
    const set = (value: number): Promise<unknown> =>
      sql.raw(`PRAGMA secure_delete = ${value}`).execute(transaction)
    // Restores the setting before the transaction ends. Until then no other work uses this connection and sees the changed setting.
    const { rows } = await sql<{ secure_delete: number }>`PRAGMA secure_delete`.execute(transaction)
    await set(1)
    try {
      return await work(transaction)
    } finally {
      await set(rows[0]?.secure_delete ?? 0)
    }
  })
}
