import { type Kysely, type RawBuilder, sql } from 'kysely'

import type { WallClock } from '../clock.ts'
import { RESEND, stateCodes } from './lifecycle.ts'
import { type JournalTables, readMeta, writeMeta } from './schema.ts'
import { isOpen } from './sql.ts'
import type { Store } from './store.ts'

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
export const STEP = 50
/** Batches that are searched through in one statement. */
const SEARCHED_AT_ONCE = 2_000
/** How long the refused batches of clients are kept whose credentials were never accepted. */
const UNACCEPTED_MS = 3_600_000
/** Longer than clocks differ. */
const IDLE_SLOTS_MS = 3_600_000

/**
 * Deletes data past its retention period, in small steps. Records that are open or due keep their batch, and batches that began
 * at a later age of the journal than `forgottenAgeMs` are kept whole: `nowMs` is a wall clock, which may have been set forward.
 */
export async function purge(
  store: Store,
  { replayForMs, keepRecordsMs }: Retention,
  nowMs: number,
  forgottenAgeMs: number,
): Promise<Purged> {
  // Keys may come from clients: rows that delay no call are not kept.
  const idleMs = nowMs - IDLE_SLOTS_MS
  await sql`delete from journal_rate_slots where idle_from < ${idleMs} and paused_until < ${idleMs}`.execute(
    store.db,
  )
  const olderThan = (ms: number): RawBuilder<unknown> =>
    sql`received_ms < ${nowMs - ms} and age_ms <= ${forgottenAgeMs}`
  const isResent = sql`active > 0 and ${firstRecord(RESENT)} is not null`
  const { refused, notApplied } = stateCodes
  const isUnaccepted = sql`bytes > 0 and newcomer = 1 and open = 0 and
    ${firstRecord(sql`state not in (${sql.lit(refused)}, ${sql.lit(notApplied)})`)} is null`
  const payloads = sql`select min(batch) from journal_payloads`
  const batches = sql`select min(id) from journal_batches`
  const inSteps = (older: RawBuilder<unknown>, first: RawBuilder<unknown>, condition: RawBuilder<unknown>, change: Change) =>
    changeInSteps(store, { older, first, condition }, change) // prettier-ignore
  return overwriting(store, async () => ({
    expired: await inSteps(olderThan(replayForMs), payloads, isResent, expireResends),
    payloads: await inSteps(olderThan(replayForMs), payloads, sql`active = 0 and bytes > 0`, dropPayloads),
    batches:
      (await inSteps(sql`received_ms < ${nowMs - UNACCEPTED_MS}`, payloads, isUnaccepted, dropBatches)) +
      (await inSteps(olderThan(keepRecordsMs), batches, sql`active = 0`, dropBatches)),
  }))
}

/** A record of the batch that fulfils a condition; SQL. Not "exists", for which PostgreSQL may read all records once more. */
const firstRecord = (condition: RawBuilder<unknown>): RawBuilder<unknown> =>
  sql`(select 1 from journal_records r where r.batch = b.id and ${condition} limit 1)`

/** A record that is sent again when its client repeats its batch; SQL. */
const RESENT = sql.raw(`active = 1 and retry = ${RESEND} and not ${isOpen()}`)

/** SQLite leaves what is deleted in the file, unless it is told to write zeros over it; always would slow every settle. */
export async function overwriting<Result>(
  { dialect, db }: Store,
  work: () => Promise<Result>,
): Promise<Result> {
  if (dialect === 'postgres') return work()
  await sql`PRAGMA secure_delete = ON`.execute(db)
  try {
    return await work()
  } finally {
    await sql`PRAGMA secure_delete = OFF`.execute(db)
  }
}

/** Changes some batches. */
type Change = (db: Kysely<JournalTables>, ids: RawBuilder<unknown>) => Promise<void>

/** Batches, in SQL. */
interface Found {
  /** Batches grow younger with their numbers: none behind the last one that is so old is searched. */
  readonly older: RawBuilder<unknown>
  /** The number of the first one that may be among them. */
  readonly first: RawBuilder<unknown>
  readonly condition: RawBuilder<unknown>
}

/** Goes through the batches once, in the order of their numbers, and in small steps: other work of the journal goes between them. */
async function changeInSteps(
  { db, exclusively }: Store,
  { older, first, condition }: Found,
  change: Change,
): Promise<number> {
  const [from, last] = [await numberOf(db, first), await lastOf(db, older)]
  let total = 0
  for (let after = from - 1; after < last;) {
    const until = Math.min(last, after + SEARCHED_AT_ONCE)
    const ids = await exclusively(async (at) => {
      const { rows } = await sql<{ id: number }>`select id from journal_batches b
        where id > ${after} and id <= ${until} and ${older} and ${condition} order by id limit ${STEP}`.execute(at)
      if (rows.length > 0) await change(at, sql.join(rows.map(({ id }) => id)))
      return rows.map(({ id }) => id)
    }) // prettier-ignore
    total += ids.length
    after = ids.length < STEP ? until : (ids.at(-1) ?? until)
  }
  return total
}

async function numberOf(db: Kysely<JournalTables>, select: RawBuilder<unknown>): Promise<number> {
  const { rows } = await sql<{ id: number | null }>`select (${select}) as id`.execute(db)
  return rows[0]?.id ?? 0
}

/** The last batch that fulfils a condition which holds for all before it; 0: none does. Searched by halves, not through all. */
async function lastOf(db: Kysely<JournalTables>, condition: RawBuilder<unknown>): Promise<number> {
  let [from, to] = [0, await numberOf(db, sql`select max(id) from journal_batches`)]
  while (from < to) {
    const middle = Math.ceil((from + to) / 2)
    const { rows } = await sql<{ id: number; isFulfilled: number }>`select id,
      case when ${condition} then 1 else 0 end as "isFulfilled"
      from journal_batches where id <= ${middle} order by id desc limit 1`.execute(db)
    const [found] = rows
    if (found === undefined || found.isFulfilled === 1) from = middle
    else to = found.id - 1
  }
  return to
}

async function expireResends(db: Kysely<JournalTables>, ids: RawBuilder<unknown>): Promise<void> {
  await sql`update journal_batches as b set active = active - (
    select count(*) from journal_records where batch = b.id and ${RESENT}) where id in (${ids})`.execute(db)
  await sql`update journal_records set active = 0, retry = null where batch in (${ids}) and ${RESENT}`.execute(
    db,
  )
  await sql`delete from journal_credentials where batch in (
    select id from journal_batches where id in (${ids}) and active = 0)`.execute(db)
}

/** Deletes the requests, the answers and the credentials of batches. */
export async function dropPayloads(db: Kysely<JournalTables>, ids: RawBuilder<unknown>): Promise<void> {
  for (const table of ['journal_payloads', 'journal_credentials', 'journal_answers'])
    await sql`delete from ${sql.table(table)} where batch in (${ids})`.execute(db)
  await sql`update journal_batches set bytes = 0 where id in (${ids})`.execute(db)
}

async function dropBatches(db: Kysely<JournalTables>, ids: RawBuilder<unknown>): Promise<void> {
  await dropPayloads(db, ids)
  await sql`delete from journal_records where batch in (${ids})`.execute(db)
  await sql`delete from journal_batches where id in (${ids})`.execute(db)
}

/**
 * The age of the journal: the time that instances had it open, measured by their monotonic clocks. It is never more than the time
 * that has passed, whatever wall clocks do, so nothing that must be remembered for a time is forgotten before it has this age.
 */
interface Ageing {
  /** The age now, ms. */
  ageMs(): number
  /** Batches that began at this age or before are older than a resend is recognised. */
  forgottenAgeMs(): number
  /** Makes the age durable, and takes over that of others which had the journal open for longer. Rejects as the driver does. */
  note(): Promise<void>
}

interface AgeingOptions {
  readonly store: Pick<Store, 'exclusively'>
  readonly clock: Pick<WallClock, 'nowMs'>
  readonly replayForMs: number
}

/** The name in `journal_meta`. */
const AGE = 'age'
/** Between two notes, as a share of the time that is measured: instances differ by no more. */
const AGEING_STEP = 1 / 96

/** Reads the age that a journal has reached, ms; 0 for one that kept none yet. */
export async function readAge(db: Kysely<JournalTables>): Promise<number> {
  return Number((await readMeta(db, AGE)) ?? 0)
}

/** See `Ageing.forgottenAgeMs`, at this age. */
export const forgottenAgeOf = (ageMs: number, replayForMs: number): number =>
  Math.floor(ageMs - replayForMs - ageingStepMs(replayForMs))

/** Goes on with the age of a journal whose tables are up to date. Rejects as the driver does. */
export async function openAgeing({ store, clock, replayForMs }: AgeingOptions): Promise<Ageing> {
  let noted = { ageMs: 0, atMs: clock.nowMs() }
  const ageMs = (): number => noted.ageMs + clock.nowMs() - noted.atMs
  const note = (): Promise<void> =>
    store.exclusively(async (db) => {
      const kept = await readAge(db)
      noted = { ageMs: Math.floor(Math.max(kept, ageMs())), atMs: clock.nowMs() }
      await writeMeta(db, AGE, String(noted.ageMs))
    })
  await note()
  return { ageMs, forgottenAgeMs: () => forgottenAgeOf(ageMs(), replayForMs), note }
}

/** How often the age is to be noted, ms. */
export function ageingStepMs(replayForMs: number): number {
  return Math.max(1_000, replayForMs * AGEING_STEP)
}
