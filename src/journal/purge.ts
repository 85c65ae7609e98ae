import { type Kysely, type SelectQueryBuilder, sql, type SqlBool } from 'kysely'

import { dropRequests } from './lease/hand-over.ts'
import { isOldCommitMarker, commitMarkerPattern } from './schema/commit-markers.ts'
import { isClosed } from './schema/record-sql.ts'
import { changeOfBatch, changeOfRecord } from './schema/row-sums.ts'
import { RESEND, stateCodes } from './lifecycle.ts'
import { batchTables, type JournalTables } from './schema/tables.ts'
import type { Store } from './store/store.ts'

/** Retention periods; milliseconds. */
export interface Retention {
  /** Of requests and replies. */
  readonly replayForMs: number
  readonly keepRecordsMs: number
}

/** What a purge deleted. */
export interface Purged {
  /** Batches of which the request, the answers and the credentials are gone. */
  readonly payloads: number
  /** Batches that are gone altogether; the totals still count them. */
  readonly batches: number
  /** Batches whose records will not be sent again with the same batch. */
  readonly expired: number
}

/** Batches per transaction: others wait for each no longer than for one of their own. */
const STEP = 50
/** How long the refused batches of clients are kept whose credentials were never accepted. */
const UNACCEPTED_MS = 3_600_000
/** Longer than clocks differ. */
const PACE_MS = 3_600_000

/**
 * Deletes data past its retention period, in small steps. Records that are open or due keep their batch, and batches above
 * `forgottenBatch` are kept whole: `nowMs` is a wall clock, which may have been set forward.
 */
export async function purge(
  store: Store,
  retention: Retention,
  nowMs: number,
  forgottenBatch = Infinity,
): Promise<Purged> {
  const { replayForMs, keepRecordsMs } = retention
  // Keys may come from clients: rows that delay no call are not kept.
  await store.db
    .deleteFrom('journal_pace')
    .where('idle_from', '<', nowMs - PACE_MS)
    .where('held_until', '<', nowMs - PACE_MS)
    .execute()
  await dropMarks(store.db)
  await dropRequests(store.db)
  await overwriteDeleted(store, true)
  try {
    return {
      expired: await inSteps(store, (db) =>
        expireResends(olderThan(db, nowMs - replayForMs, forgottenBatch), db),
      ),
      payloads: await inSteps(store, (db) =>
        dropPayloads(olderThan(db, nowMs - replayForMs, forgottenBatch), db),
      ),
      batches:
        (await inSteps(store, (db) => dropBatches(unaccepted(db, nowMs - UNACCEPTED_MS), db))) +
        (await inSteps(store, (db) =>
          dropBatches(olderThan(db, nowMs - keepRecordsMs, forgottenBatch).where('live', '=', 0), db),
        )),
    }
  } finally {
    await overwriteDeleted(store, false)
  }
}

async function dropMarks(db: Kysely<JournalTables>): Promise<void> {
  const newest = await db
    .selectFrom('journal_instances')
    .select(({ fn }) => fn.max('id').as('id'))
    .executeTakeFirst()
  const marks = await db
    .selectFrom('journal_meta')
    .select('name')
    .where('name', 'like', commitMarkerPattern)
    .execute()
  const old = marks.map(({ name }) => name).filter((name) => isOldCommitMarker(name, newest?.id ?? 0))
  if (old.length > 0) await db.deleteFrom('journal_meta').where('name', 'in', old).execute()
}

/** SQLite leaves what is deleted in the file, unless it is told to write zeros over it; always would slow every settle. */
export async function overwriteDeleted({ dialect, db }: Store, on: boolean): Promise<void> {
  if (dialect === 'sqlite') await sql.raw(`PRAGMA secure_delete = ${on ? 'ON' : 'OFF'}`).execute(db)
}

async function inSteps(store: Store, step: (db: Kysely<JournalTables>) => Promise<number>): Promise<number> {
  let total = 0
  for (;;) {
    const done = await store.db.transaction().execute(step)
    total += done
    if (done < STEP) return total
  }
}

type Found = SelectQueryBuilder<JournalTables, 'journal_batches', { id: number }>

const olderThan = (db: Kysely<JournalTables>, beforeMs: number, forgottenBatch: number): Found =>
  db
    .selectFrom('journal_batches')
    .select('id')
    .where('received_ms', '<', beforeMs)
    .$if(forgottenBatch !== Infinity, (query) => query.where('id', '<=', forgottenBatch))
    .orderBy('id')
    .limit(STEP)

/** What was refused, and came with credentials that were never accepted: its client may send it again as a new batch. */
const unaccepted = (db: Kysely<JournalTables>, beforeMs: number): Found =>
  olderThan(db, beforeMs, Infinity)
    .where('bytes', '>', 0)
    .where('newcomer', '=', 1)
    .where('open', '=', 0)
    .where((eb) =>
      eb.not(
        eb.exists(
          eb
            .selectFrom('journal_records')
            .select('position')
            .whereRef('batch', '=', 'journal_batches.id')
            .where('state', '<>', stateCodes.refused),
        ),
      ),
    )

async function numbers(found: Found): Promise<number[]> {
  return (await found.execute()).map(({ id }) => id)
}

async function expireResends(older: Found, db: Kysely<JournalTables>): Promise<number> {
  const ids = await numbers(
    older
      .where('live', '>', 0)
      .where('id', 'in', (eb) =>
        eb
          .selectFrom('journal_records')
          .select('batch')
          .where('live', '=', 1)
          .where('again', '=', RESEND)
          .where(sql.raw<SqlBool>(isClosed())),
      ),
  )
  for (const id of ids) {
    const { numUpdatedRows } = await db
      .updateTable('journal_records')
      .set({ live: 0, again: null, sum: sql.raw(changeOfRecord({ live: '0', again: 'null' })) })
      .where('batch', '=', id)
      .where('live', '=', 1)
      .where('again', '=', RESEND)
      .where(sql.raw<SqlBool>(isClosed()))
      .executeTakeFirst()
    const { live } = await db
      .updateTable('journal_batches')
      .set((eb) => ({
        live: eb('live', '-', Number(numUpdatedRows)),
        sum: sql.raw(changeOfBatch({ live: `live - ${Number(numUpdatedRows)}` })),
      }))
      .where('id', '=', id)
      .returning('live')
      .executeTakeFirstOrThrow()
    if (live === 0) await db.deleteFrom('journal_credentials').where('batch', '=', id).execute()
  }
  return ids.length
}

async function dropPayloads(older: Found, db: Kysely<JournalTables>): Promise<number> {
  const ids = await numbers(
    older.where('live', '=', 0).where('id', 'in', (eb) => eb.selectFrom('journal_payloads').select('batch')),
  )
  if (ids.length === 0) return 0
  for (const table of ['journal_payloads', 'journal_credentials', 'journal_answers'] as const) {
    await db.deleteFrom(table).where('batch', 'in', ids).execute()
  }
  await db.updateTable('journal_batches').set({ bytes: 0 }).where('id', 'in', ids).execute()
  return ids.length
}

async function dropBatches(older: Found, db: Kysely<JournalTables>): Promise<number> {
  const ids = await numbers(older)
  if (ids.length === 0) return 0
  for (const [table, column] of batchTables)
    await db.deleteFrom(table).where(sql.ref(column), 'in', ids).execute()
  return ids.length
}
