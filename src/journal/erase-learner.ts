import { type Kysely, type RawBuilder, sql } from 'kysely'

import { NO_KEY } from './seal.ts'
import { dropPayloads, overwriting, STEP } from './retention.ts'
import { type Sealed, unpackAnswers, type Unsealing, unseal } from './seal.ts'
import type { Store } from './store.ts'
import { isDamagedBatch } from './store-error.ts'
import type { JournalTables } from './schema.ts'

/** What was erased about one learner, as numbers of batches: none of them shows whose they are. */
export interface Erased {
  /** Batches of which the request, the answers, the credentials and the hashes of the record keys are gone. */
  readonly erased: readonly number[]
  /** Batches that name the learner and have records that are still sent, read back or awaited: nothing of them was erased. */
  readonly unsettled: readonly number[]
  /** Batches that cannot be read, so that it is not known whether they name the learner. */
  readonly unreadable: readonly number[]
  /** Whether the files hold no copy of what was deleted; false where others kept the database from rewriting them. */
  readonly rewritten: boolean
}

/** What finds a learner in the journal, which reads neither requests nor answers. */
export interface LearnerSearch {
  /** Whether a request names the learner. */
  readonly request: (request: Uint8Array) => boolean
  /** Whether V2's reply to a batch that it served, as `writes` kept it, names the learner or cannot be searched. */
  readonly reply: (reply: string) => boolean
}

/**
 * Erases what the journal holds of one learner. A batch is one sealed request of many learners, so all of its request and answers go;
 * its row, its digests and the outcomes stay, and a repetition of it is refused as `ADP_JOURNAL_LOST`, never posted again. Where V2 served
 * it no request is kept, so V2's reply is searched instead. Hashes of keys are erased of every settled
 * batch without a request, since they cannot be searched. Errors: `ADP_CONFIGURATION` without the key of a request or a reply.
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

/** Searches what is kept of V2's answer to one batch. */
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

/** Drops the content of those that are settled, and gives their numbers. */
async function dropContent(db: Kysely<JournalTables>, ids: RawBuilder<unknown>): Promise<readonly number[]> {
  const { rows } = await sql<{ id: number }>`
    select id from journal_batches where id in (${ids}) and active = 0`.execute(db)
  const batches = rows.map(({ id }) => id)
  if (batches.length > 0) await dropPayloads(db, sql.join(batches))
  return batches
}

/** Erases the hashes of keys of settled batches without a request: with the salt, a learner and an event could be tried on them. */
async function dropKeys({ db, exclusively }: Store): Promise<void> {
  for (let last = -1; ;) {
    // Of a request that V2 was sent nothing is kept; its row of a payload is empty.
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

/** Tables with content of requests, and the one with hashes of keys: a change leaves the old version of a row behind. */
const contents = ['journal_payloads', 'journal_answers', 'journal_credentials', 'journal_records']
const TRIES = 5

/**
 * Rewrites the files of a database without the remains of what was deleted: SQLite's pages keep them in unused space and in the log,
 * PostgreSQL's until a vacuum. Others wait meanwhile. Gives false where that did not work in time: it can be repeated.
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
    // A busy database, a full disk or the bound of one statement: what was erased is erased, and only remains are left.
    if (store.toStoreError(error).kind === 'transient') return false
    throw error
  }
}
