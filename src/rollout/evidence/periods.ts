import { createHmac, randomBytes } from 'node:crypto'

import { sql, type Transaction } from 'kysely'

import { AdapterError } from '../../errors.ts'
import {
  decrypt,
  encrypt,
  type JournalDatabase,
  type JournalKey,
  type JournalTables,
} from '../../journal/index.ts'
import { readNow } from '../store/stage-rows.ts'
import { type EvidenceScope, readPairCounts } from './read-kept.ts'

/** The key of a period as plain values, for as long as it is kept. */
export interface PeriodKey {
  readonly period: number
  /** Today by the clock of the database, `YYYY-MM-DD`. */
  readonly today: string
  /** The days that the period counts records of, `YYYY-MM-DD`: from the first on, up to but not including the second. */
  readonly days: readonly [from: string, until: string]
  readonly secret: Uint8Array
}

/** The key of a period, and what it is used for. */
export interface EvidenceKey extends PeriodKey {
  /** 16 bytes that say nothing about the text without the key. Texts of different kinds never have the same hash. */
  hash(kind: 'pair' | 'request' | 'school' | 'record', text: string): Uint8Array
  /** Whether this period counts records of a day, `YYYY-MM-DD`; each day is of one period. */
  covers(day: string): boolean
}

/** How long a key is kept. */
const PERIOD_MS = 90 * 86_400_000
/** A period that began later than now by more than this: the clock of the database was ahead, and its age cannot be known. */
const AHEAD_MS = 86_400_000
/** Bytes of a hash that are kept. */
const HASH_BYTES = 16

/** The running period of a scope with its key; an expired one is destroyed, and the next begins. */
export async function openPeriod(
  database: JournalDatabase,
  { partner, stage, revision }: EvidenceScope,
): Promise<PeriodKey> {
  // Callers hand in what has more members.
  const scope = { partner, stage, revision }
  const { db, macKey } = database
  const nowMs = await readNow(database, db)
  const latest = await db
    .selectFrom('evidence_periods')
    .select(['id', 'period', 'since_ms', 'from_day', 'until_day', 'hash_key', 'sealed'])
    .where('partner', '=', scope.partner)
    .where('stage', '=', scope.stage)
    .where('revision', '=', scope.revision)
    .orderBy('period', 'desc')
    .limit(1)
    .executeTakeFirst()
  if (latest !== undefined && latest.hash_key !== null) {
    const { id, since_ms: since, from_day: from, until_day: until, hash_key: kept, sealed } = latest
    if (nowMs < since + PERIOD_MS && since <= nowMs + AHEAD_MS) {
      const secret = await openKey(macKey, placeOf(scope, latest.period), kept, sealed)
      return { period: id, today: dayOf(nowMs), days: [from, until], secret }
    }
    await destroyPeriod(database, id)
  }
  const period = (latest?.period ?? 0) + 1
  await db
    .insertInto('evidence_periods')
    .values({
      ...scope,
      period,
      since_ms: nowMs,
      last_ms: nowMs,
      from_day: latest?.until_day ?? '',
      until_day: dayOf(nowMs + PERIOD_MS),
      ...(await createKey(macKey, placeOf(scope, period))),
      kept: null,
    })
    // Another instance may have begun it.
    .onConflict((conflict) => conflict.columns(['partner', 'stage', 'revision', 'period']).doNothing())
    .execute()
  return openPeriod(database, scope)
}

/** The day of a time, UTC. */
const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10)

/** The hashes and days of a period. */
export function toEvidenceKey(key: PeriodKey): EvidenceKey {
  const [from, until] = key.days
  return {
    ...key,
    hash: (kind, text) =>
      createHmac('sha256', key.secret).update(`${kind}\0${text}`).digest().subarray(0, HASH_BYTES),
    covers: (day) => day >= from && day < until,
  }
}

/** Names the row of a key, so that none can be moved to another. */
const placeOf = ({ partner, stage, revision }: EvidenceScope, period: number): string =>
  `${partner}/${stage}/${revision}/${period}`

const KEY_BYTES = 32

/** Makes a key, sealed where the journal has keys. */
async function createKey(
  macKey: JournalDatabase['macKey'],
  place: string,
): Promise<{ readonly hash_key: Uint8Array; readonly sealed: number }> {
  const key = randomBytes(KEY_BYTES)
  if (!macKey.keyed) return { hash_key: key, sealed: 0 }
  return { hash_key: await encrypt(key, sealingKey(macKey), place), sealed: 1 }
}

/** Opens a key. Errors: `ADP_JOURNAL_DAMAGED`; `ADP_CONFIGURATION` for a sealed one without the journal's keys. */
async function openKey(
  macKey: JournalDatabase['macKey'],
  place: string,
  kept: Uint8Array,
  sealed: number,
): Promise<Uint8Array> {
  const damaged = (cause?: unknown): AdapterError => {
    const message = `The journal is damaged: the key of the evidence of ${place} was changed.`
    return new AdapterError('ADP_JOURNAL_DAMAGED', message, { cause })
  }
  if (sealed === 0) {
    if (kept.length !== KEY_BYTES) throw damaged()
    return kept
  }
  if (!macKey.keyed)
    throw new AdapterError(
      'ADP_CONFIGURATION',
      'The evidence of comparison is sealed, and the configuration has no journal.keys.',
    )
  return decrypt(kept, sealingKey(macKey), place).catch((cause: unknown) => {
    throw damaged(cause)
  })
}

/** The key of the stages' MACs is sealed with a key of the journal and outlives it; one derived from it seals the keys of evidence. */
const sealingKey = ({ key }: JournalDatabase['macKey']): JournalKey => ({
  id: 'evidence',
  key: createHmac('sha256', key).update('markbridge evidence').digest(),
})

/** Destroys the keys of expired periods with their hashes; returns how many. */
export async function destroyPeriods(database: JournalDatabase): Promise<number> {
  const nowMs = database.nowMs()
  const expired = await database.db
    .selectFrom('evidence_periods')
    .select('id')
    .where('hash_key', 'is not', null)
    .where((eb) =>
      eb.or([
        eb('since_ms', '<=', sql<number>`${nowMs} - ${PERIOD_MS}`),
        eb('since_ms', '>', sql<number>`${nowMs} + ${AHEAD_MS}`),
      ]),
    )
    .execute()
  for (const { id } of expired) await destroyPeriod(database, id)
  return expired.length
}

/** Replaces the hashes of a period by what they add up to, and destroys its key; does nothing where that was done. */
async function destroyPeriod(database: JournalDatabase, id: number): Promise<void> {
  await overwriting(database, async (transaction) => {
    if (!(await lockPeriod(database, transaction, id))) return
    const kept = JSON.stringify(await readPairCounts(transaction, id))
    await transaction.deleteFrom('evidence_hashes').where('period', '=', id).execute()
    await transaction
      .updateTable('evidence_periods')
      .set({ hash_key: null, kept })
      .where('id', '=', id)
      .execute()
  })
  // The log of changes of SQLite still has the pages as they were.
  if (database.dialect === 'sqlite') await sql`PRAGMA wal_checkpoint(TRUNCATE)`.execute(database.db)
}

/** Locks a period: two instances change it one after the other. False: its key was destroyed. */
export async function lockPeriod(
  { dialect }: JournalDatabase,
  transaction: Transaction<JournalTables>,
  id: number,
): Promise<boolean> {
  const row = await transaction
    .selectFrom('evidence_periods')
    .select('hash_key')
    .where('id', '=', id)
    .$if(dialect === 'postgres', (query) => query.forUpdate())
    .executeTakeFirst()
  return row !== undefined && row.hash_key !== null
}

/**
 * Runs a transaction that leaves no bytes of what it deletes or moves in the file of SQLite. PostgreSQL keeps deleted rows until its next
 * vacuum.
 */
export function overwriting<Result>(
  { db, dialect }: JournalDatabase,
  work: (transaction: Transaction<JournalTables>) => Promise<Result>,
): Promise<Result> {
  return db.transaction().execute(async (transaction) => {
    if (dialect === 'postgres') return work(transaction)
    const set = (value: number): Promise<unknown> =>
      sql.raw(`PRAGMA secure_delete = ${value}`).execute(transaction)
    // Within the transaction, which has the connection to itself: another one may have set it for its own work.
    const { rows } = await sql<{ secure_delete: number }>`PRAGMA secure_delete`.execute(transaction)
    await set(1)
    try {
      return await work(transaction)
    } finally {
      await set(rows[0]?.secure_delete ?? 0)
    }
  })
}
