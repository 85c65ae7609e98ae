import type { Kysely } from 'kysely'

import { KEY_BYTES } from './store/hash-key.ts'
import { isDamagedBatch } from './store/damage.ts'
import { type SealedFor, type Unsealing, unseal } from './store/seal.ts'
import type { Store } from './store/store.ts'
import { unpackAnswers } from './store/answer-pack.ts'
import { sideCodes, toSide } from './side.ts'
import type { JournalTables } from './schema/tables.ts'
import { overwriteDeleted } from './purge.ts'
import { rewriteFiles } from './rewrite-files.ts'

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

/** Batches per transaction. */
const STEP = 50
/** Stands for the hash of a key that was erased. */
const NO_KEY = new Uint8Array(KEY_BYTES)

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
      const of = { batch: row.batch, owner: row.owner_id }
      const request = await unseal(row, how, 'payload', of)
      const isOnlyAnswered = toSide(row.side) === 'v2' || request.length === 0
      if (search.request(request) || (isOnlyAnswered && (await isInReplies(db, how, of, search))))
        named.push(row.batch)
    } catch (error) {
      if (!isDamagedBatch(error)) throw error
      unreadable.push(row.batch)
    }
  }
  const erased: number[] = []
  await overwriteDeleted(store, true)
  try {
    for (let from = 0; from < named.length; from += STEP) {
      const ids = named.slice(from, from + STEP)
      erased.push(...(await db.transaction().execute((at) => dropContent(at, ids))))
    }
    await dropKeys(db)
  } finally {
    await overwriteDeleted(store, false)
  }
  const gone = new Set(erased)
  return {
    erased,
    unsettled: named.filter((batch) => !gone.has(batch)),
    unreadable,
    rewritten: await rewriteFiles(store),
  }
}

const nextPayload = (db: Kysely<JournalTables>, last: number) =>
  db
    .selectFrom('journal_payloads as payload')
    .innerJoin('journal_batches as batch', 'batch.id', 'payload.batch')
    .select(['payload.batch', 'batch.owner_id', 'batch.side', 'payload.key_id as keyId', 'payload.body'])
    .where('payload.batch', '>', last)
    .orderBy('payload.batch')
    .limit(1)
    .executeTakeFirst()

/** Searches what is kept of V2's answer to one batch. */
async function isInReplies(
  db: Kysely<JournalTables>,
  how: Unsealing,
  of: SealedFor,
  search: LearnerSearch,
): Promise<boolean> {
  const packs = await db
    .selectFrom('journal_answers')
    .select(['key_id as keyId', 'body'])
    .where('batch', '=', of.batch)
    .execute()
  for (const pack of packs) {
    const replies = new Map<number, string>()
    unpackAnswers(await unseal(pack, how, 'answers', of), replies)
    if ([...replies.values()].some(search.reply)) return true
  }
  return false
}

/** Drops the content of those that are settled, and gives their numbers. */
async function dropContent(db: Kysely<JournalTables>, ids: readonly number[]): Promise<readonly number[]> {
  const settled = await db
    .selectFrom('journal_batches')
    .select('id')
    .where('id', 'in', ids)
    .where('live', '=', 0)
    .execute()
  const batches = settled.map(({ id }) => id)
  if (batches.length === 0) return []
  for (const table of ['journal_payloads', 'journal_credentials', 'journal_answers'] as const) {
    await db.deleteFrom(table).where('batch', 'in', batches).execute()
  }
  return batches
}

/** Erases the hashes of keys of settled batches without a request: with the salt, a learner and an event could be tried on them. */
async function dropKeys(db: Kysely<JournalTables>): Promise<void> {
  for (let last = -1; ;) {
    const rows = await db
      .selectFrom('journal_batches')
      .select('id')
      .where('id', '>', last)
      .where('live', '=', 0)
      .where((eb) =>
        eb.or([
          // Of a request that V2 was sent nothing is kept; its row of a payload is empty.
          eb('side', '=', sideCodes.v2),
          eb('id', 'not in', eb.selectFrom('journal_payloads').select('batch')),
        ]),
      )
      .orderBy('id')
      .limit(STEP)
      .execute()
    const end = rows.at(-1)
    if (end === undefined) return
    last = end.id
    const ids = rows.map(({ id }) => id)
    await db
      .updateTable('journal_records')
      .set({ key: NO_KEY, key_copy: NO_KEY, mark: null })
      .where('batch', 'in', ids)
      .where('key', '<>', NO_KEY)
      .execute()
  }
}
