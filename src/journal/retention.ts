import { type Kysely, type RawBuilder, sql } from 'kysely'

import type { WallClock } from '../clock.ts'
import { RESEND, stateCodes } from './lifecycle.ts'
import { type JournalTables, readMeta, writeMeta } from './schema.ts'
import { isOpen } from './sql.ts'
import type { Store } from './store.ts'

export interface Retention {
  /** How long requests and replies are kept, in milliseconds. */
  readonly replayForMs: number
  readonly keepRecordsMs: number
}

export interface Purged {
  /** Number of batches whose request, replies and credentials were deleted. */
  readonly payloads: number
  /** Number of batches that were deleted completely. The totals still count their records. */
  readonly batches: number
  /** Number of batches whose records are no longer sent again when the client resends the batch. */
  readonly expired: number
}

/** Maximum number of batches that one transaction changes, so that other operations wait no longer than for an ordinary group. */
export const STEP = 50
const SEARCHED_AT_ONCE = 2_000
/**
 * How long the journal keeps a batch of a client whose credentials were never accepted, if all its records were refused or not applied.
 */
const UNACCEPTED_MS = 3_600_000
/** How long an unused row of rate slots is kept. This time is longer than any difference between the clocks of the machines. */
const IDLE_SLOTS_MS = 3_600_000

/**
 * Deletes data past its retention period, in small steps. A batch with open or due records is kept. A batch that began at a later age of
 * the journal than `forgottenAgeMs` is kept completely, because `nowMs` comes from a wall clock that may have been set forward. The age
 * does not protect the batches that `UNACCEPTED_MS` describes.
 */
export async function purge(
  store: Store,
  { replayForMs, keepRecordsMs }: Retention,
  nowMs: number,
  forgottenAgeMs: number,
): Promise<Purged> {
  // Deletes rate slots that no longer delay a call. Clients choose the subscription keys that name the rows, so rows could accumulate without limit.
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

/** Returns SQL that finds a record of batch `b`. Uses a subquery, because with "exists" PostgreSQL may read all records again. */
const firstRecord = (condition: RawBuilder<unknown>): RawBuilder<unknown> =>
  sql`(select 1 from journal_records r where r.batch = b.id and ${condition} limit 1)`

/** SQL that is true for a record that is sent again when its client resends the batch. */
const RESENT = sql.raw(`active = 1 and retry = ${RESEND} and not ${isOpen()}`)

/** Runs work that deletes data, and makes SQLite overwrite the deleted data with zeros. Overwriting at all times would slow down every settle. */
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

type Change = (db: Kysely<JournalTables>, ids: RawBuilder<unknown>) => Promise<void>

interface Found {
  /** A condition on the age of a batch. The search ends at the last batch that meets the condition, because later batches are younger. */
  readonly older: RawBuilder<unknown>
  readonly first: RawBuilder<unknown>
  readonly condition: RawBuilder<unknown>
}

/** Changes the selected batches in small steps, so that other work of the journal runs in between. Returns the number of changed batches. */
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

/** Returns the number of the last batch that meets a condition, or 0. Uses bisection, so all earlier batches must meet the condition too. */
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
 * Measures the age of a journal: how long instances had it open, by monotonic clocks. Setting a wall clock therefore makes nothing expire
 * early.
 */
interface Ageing {
  ageMs(): number
  /** Returns the age up to which batches are forgotten: a batch that began at this age or earlier is no longer recognised as a resend. */
  forgottenAgeMs(): number
  /** Stores the age durably, and takes over a higher age that another instance stored. Rejects with the errors of the driver. */
  save(): Promise<void>
}

interface AgeingOptions {
  readonly store: Pick<Store, 'exclusively'>
  readonly clock: Pick<WallClock, 'nowMs'>
  readonly replayForMs: number
}

const AGE = 'age'
/** The interval between two writes of the age, as a fraction of the retention period. The ages of two instances differ by at most one interval. */
const AGEING_STEP = 1 / 96

/** Returns the stored age in milliseconds, or 0 if none is stored yet. */
export async function readAge(db: Kysely<JournalTables>): Promise<number> {
  return Number((await readMeta(db, AGE)) ?? 0)
}

export const forgottenAgeOf = (ageMs: number, replayForMs: number): number =>
  Math.floor(ageMs - replayForMs - ageingStepMs(replayForMs))

/** Continues the stored age of a journal. Rejects with the errors of the driver. */
export async function openAgeing({ store, clock, replayForMs }: AgeingOptions): Promise<Ageing> {
  let measured = { ageMs: 0, atMs: clock.nowMs() }
  const ageMs = (): number => measured.ageMs + clock.nowMs() - measured.atMs
  const save = (): Promise<void> =>
    store.exclusively(async (db) => {
      const stored = await readAge(db)
      measured = { ageMs: Math.floor(Math.max(stored, ageMs())), atMs: clock.nowMs() }
      await writeMeta(db, AGE, String(measured.ageMs))
    })
  await save()
  return { ageMs, forgottenAgeMs: () => forgottenAgeOf(ageMs(), replayForMs), save }
}

export function ageingStepMs(replayForMs: number): number {
  return Math.max(1_000, replayForMs * AGEING_STEP)
}
