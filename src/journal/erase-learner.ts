import { type Kysely, type RawBuilder, sql } from 'kysely'

import { NO_KEY } from './seal.ts'
import { dropPayloads, overwriting, STEP } from './retention.ts'
import { type Sealed, unpackAnswers, type Unsealing, unseal } from './seal.ts'
import type { Store } from './store.ts'
import { isDamagedBatch } from './store-error.ts'
import type { JournalTables } from './schema.ts'

/** The result of erasing one learner. The numbers of batches do not reveal the learner. */
export interface Erased {
  /** Batches whose request, replies, credentials and key hashes were deleted. */
  readonly erased: readonly number[]
  /** Batches that name the learner but still have active records. No content of these batches was erased. */
  readonly unsettled: readonly number[]
  /** Batches that cannot be read and therefore may name the learner. */
  readonly unreadable: readonly number[]
  /** True if the files contain no copy of the deleted data. False if the rewrite of the files failed, for example because of other connections. */
  readonly rewritten: boolean
}

/** Finds a learner in requests and replies. The journal itself does not interpret their bytes. */
export interface LearnerSearch {
  readonly request: (request: Uint8Array) => boolean
  /** Returns true if V2's stored reply to a batch names the learner or cannot be searched. */
  readonly reply: (reply: string) => boolean
}

/**
 * Erases the content of the journal about one learner. A batch is stored as one sealed request with many learners, so its whole request and
 * all its replies are deleted. Its row, digests and outcomes stay: a resend of the batch is refused with `ADP_RESULT_LOST` and never
 * posted again. For a batch that V2 served, the journal stores and searches only V2's reply. Hashes of keys cannot be searched, so they are
 * erased from every settled batch without a stored request. Throws `ADP_CONFIGURATION` if the key of a request or reply is missing.
 */
export async function eraseLearner(store: Store, how: Unsealing, search: LearnerSearch): Promise<Erased> {
  const { db } = store
  const unreadable: number[] = []
  const named: number[] = []
  for (let last = -1; ;) {
    const row = await nextPayload(db, last)
    if (row === undefined) break
    last = row.batch
    try {
      const request = await unseal(row, how, { ...row, kind: 'payload' })
      const isOnlyAnswered = row.onV2 === 1 || request.length === 0
      if (search.request(request) || (isOnlyAnswered && (await isInReplies(db, how, row, search))))
        named.push(row.batch)
    } catch (error) {
      if (!isDamagedBatch(error)) throw error
      unreadable.push(row.batch)
    }
  }
  const erased: number[] = []
  await overwriting(store, async () => {
    for (let from = 0; from < named.length; from += STEP) {
      const ids = sql.join(named.slice(from, from + STEP))
      erased.push(...(await store.exclusively((at) => dropContent(at, ids))))
    }
    await dropKeys(store)
  })
  const gone = new Set(erased)
  return {
    erased,
    unsettled: named.filter((batch) => !gone.has(batch)),
    unreadable,
    rewritten: await rewriteFiles(store),
  }
}

interface PayloadRow extends Sealed {
  readonly batch: number
  readonly owner: string
  readonly onV2: number
}

async function nextPayload(db: Kysely<JournalTables>, last: number): Promise<PayloadRow | undefined> {
  const { rows } = await sql<PayloadRow>`
    select payload.batch, batch.owner, batch.on_v2 as "onV2", payload.key_id as "keyId", payload.body
    from journal_payloads payload join journal_batches batch on batch.id = payload.batch
    where payload.batch > ${last} order by payload.batch limit 1`.execute(db)
  return rows[0]
}

async function isInReplies(
  db: Kysely<JournalTables>,
  how: Unsealing,
  { batch, owner }: PayloadRow,
  search: LearnerSearch,
): Promise<boolean> {
  const { rows: packs } = await sql<Sealed>`
    select key_id as "keyId", body from journal_answers where batch = ${batch}`.execute(db)
  for (const pack of packs) {
    const replies = new Map<number, string>()
    unpackAnswers(await unseal(pack, how, { kind: 'answers', batch, owner }), replies)
    if ([...replies.values()].some(search.reply)) return true
  }
  return false
}

async function dropContent(db: Kysely<JournalTables>, ids: RawBuilder<unknown>): Promise<readonly number[]> {
  const { rows } = await sql<{ id: number }>`
    select id from journal_batches where id in (${ids}) and active = 0`.execute(db)
  const batches = rows.map(({ id }) => id)
  if (batches.length > 0) await dropPayloads(db, sql.join(batches))
  return batches
}

/**
 * Erases the hashes of keys in settled batches without a request. With the salt, anyone could otherwise test each hash against known
 * learners and events.
 */
async function dropKeys({ db, exclusively }: Store): Promise<void> {
  for (let last = -1; ;) {
    // Also selects batches that V2 served: their payload rows contain no request.
    const { rows } = await sql<{ id: number }>`select id from journal_batches
      where id > ${last} and active = 0 and (on_v2 = 1 or id not in (select batch from journal_payloads))
      order by id limit ${STEP}`.execute(db)
    const end = rows.at(-1)
    if (end === undefined) return
    last = end.id
    await exclusively((at) =>
      sql`update journal_records set key = ${NO_KEY}, mark = null
        where batch in (${sql.join(rows.map(({ id }) => id))}) and key <> ${NO_KEY}`.execute(at),
    )
  }
}

/** The tables that contain requests, replies, credentials or hashes of keys. PostgreSQL leaves the old version of a changed row in the file. */
const contents = ['journal_payloads', 'journal_answers', 'journal_credentials', 'journal_records']
const TRIES = 5

/**
 * Rewrites the files of a database without remains of deleted data. SQLite keeps such remains in unused space and in the log, and
 * PostgreSQL keeps them until a vacuum. Other connections wait during the rewrite. Returns false if the rewrite did not succeed in time;
 * the caller may repeat it.
 */
async function rewriteFiles(store: Store): Promise<boolean> {
  const { dialect, db } = store
  try {
    if (dialect === 'postgres') {
      for (const table of contents) await sql`vacuum full ${sql.table(table)}`.execute(db)
      return true
    }
    await sql`vacuum`.execute(db)
    for (let tries = 0; tries < TRIES; tries += 1) {
      const { rows } = await sql<{ readonly busy: number }>`pragma wal_checkpoint(truncate)`.execute(db)
      if (rows[0]?.busy === 0) return true
    }
    return false
  } catch (error) {
    // Reports an incomplete rewrite if the database is busy, the disk is full or the statement timed out. The rows are deleted, but the
    // files may still contain old copies of their content.
    if (store.toStoreError(error).kind === 'transient') return false
    throw error
  }
}
