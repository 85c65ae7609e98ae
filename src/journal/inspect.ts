import { type Kysely, type RawBuilder, sql } from 'kysely'

import { describeCause, formatCause } from './causes.ts'
import { type Erased, eraseLearner, type LearnerSearch } from './erase-learner.ts'
import type { Balance, DueRecords, RecordRef, RecordState } from './journal.ts'
import { openExisting } from './open-store.ts'
import { ofEachState, recordStates, selectStates, stateCodes, stateColumns, toRetry } from './lifecycle.ts'
import { isDue, readBalances, toDueRecords } from './read-records.ts'
import { forgottenAgeOf, purge, type Purged, readAge, type Retention } from './retention.ts'
import type { Unsealing } from './seal.ts'
import type { Store } from './store.ts'
import type { JournalTables } from './schema.ts'

/** Selects batches. An absent member does not filter. */
export interface BatchFilter {
  readonly partner?: string | undefined
  readonly state?: RecordState | undefined
  /** Selects batches received at or after this time, in milliseconds since the epoch. */
  readonly sinceMs?: number | undefined
  /** Selects batches with smaller numbers. Used for the next page of a list. */
  readonly before?: number | undefined
  readonly limit: number
}

type States = Readonly<Record<RecordState, number>>

export interface BatchSummary {
  readonly batch: number
  readonly partner: string
  readonly receivedMs: number
  readonly records: number
  readonly states: States
  /** The time at which the next record of the batch is due, in milliseconds since the epoch, or `undefined` if no record waits for a retry. */
  readonly nextDueMs: number | undefined
  readonly deadLetters: number
}

export interface RecordSummary {
  readonly batch: number
  /** The position of the record in its batch, counted from 0. The number of its part in the reply is one higher. */
  readonly position: number
  readonly partner: string
  readonly receivedMs: number
  readonly state: RecordState
  readonly reason: string | undefined
  readonly retry: 'resend' | number | undefined
  readonly attempts: number
  readonly superseded: boolean
  /** True for a dead letter: the record is no longer retried, and its client does not know the outcome. */
  readonly deadLetter: boolean
  readonly settledMs: number | undefined
  readonly remedy: string | undefined
}

export interface BatchReport extends BatchSummary {
  readonly parts: readonly RecordSummary[]
}

export interface CheckedBalance extends Balance {
  /** The number of stored records by state. Records of deleted batches count only in the totals. */
  readonly kept: States
  /** False if the totals and the stored records contradict each other, which means that the journal is damaged. */
  readonly holds: boolean
}

interface LetterFilter {
  readonly partner?: string | undefined
  readonly limit: number
}

/**
 * Shows and maintains a journal, even while an adapter uses it. Only `erase` needs keys. All methods throw the errors of
 * `Availability.ask`.
 */
export interface JournalInspector {
  /** Returns batches, newest first. */
  batches(filter: BatchFilter): Promise<readonly BatchSummary[]>
  batch(number: number): Promise<BatchReport | undefined>
  /** Returns dead letters, oldest first. */
  deadLetters(filter: LetterFilter): Promise<readonly RecordSummary[]>
  balances(): Promise<readonly CheckedBalance[]>
  /** Reads the whole file of an SQLite journal and returns its damage, or `undefined` if the file is not damaged. */
  checkIntegrity(): Promise<string | undefined>
  /** Makes waiting records due now. A running server sends these records within seconds. Returns the records that are now due. */
  makeDue(nowMs: number, batch?: number, positions?: readonly number[]): Promise<readonly DueRecords[]>
  /**
   * Removes the dead letters at `positions` of a batch from the list, or all its dead letters if `positions` is absent. Returns how many
   * were removed.
   */
  dismiss(batch: number, positions?: readonly number[]): Promise<number>
  purge(retention: Retention, nowMs: number): Promise<Purged>
  /** Erases requests and replies of settled batches that name a learner. Throws `ADP_CONFIGURATION` without the keys of the journal. */
  erase(how: Unsealing, search: LearnerSearch): Promise<Erased>
  close(): Promise<void>
}

/**
 * Opens an existing journal without a lease and without changing its tables. Throws `ADP_CONFIGURATION` for an invalid URL or a journal of
 * another version, `ADP_JOURNAL_DAMAGED` if the journal is damaged, and `ADP_JOURNAL_UNAVAILABLE` if the journal cannot be reached.
 */
export function openInspector(url: string, highWaterFile?: string): Promise<JournalInspector> {
  return openExisting(url, highWaterFile, (store, ask) => {
    const { db } = store
    return {
      batches: (filter) => ask(() => listBatches(db, filter)),
      batch: (number) => ask(() => readReport(db, number)),
      deadLetters: ({ partner, limit }) =>
        ask(() => listRecords(db, sql`r.dead_letter = 1 and ${isOf('b.partner', partner)}`, limit)),
      balances: () => ask(() => checkBalances(db)),
      checkIntegrity: () => ask(() => store.checkIntegrity()),
      makeDue: (nowMs, batch, positions) => ask(() => makeDue(store, nowMs, batch, positions)),
      dismiss: (batch, positions) => ask(() => dismissDeadLetters(store, batch, positions)),
      purge: (retention, nowMs) =>
        ask(async () =>
          purge(store, retention, nowMs, forgottenAgeOf(await readAge(store.db), retention.replayForMs)),
        ),
      erase: (how, search) => ask(() => eraseLearner(store, how, search)),
      close: () => store.close(),
    }
  })
}

/**
 * Returns SQL that compares a column with a value, or that is always true if `value` is absent. `column` must not come from outside input.
 */
const isOf = (column: string, value: number | string | undefined, comparison = '='): RawBuilder<unknown> =>
  value === undefined ? sql`1 = 1` : sql`${sql.raw(`${column} ${comparison}`)} ${value}`

const isAmong = (positions: readonly number[] | undefined): RawBuilder<unknown> =>
  positions === undefined ? sql`1 = 1` : sql`position in (${sql.join(positions)})`

interface SummaryRow extends States {
  readonly batch: number
  readonly partner: string
  readonly receivedMs: number
  readonly nextDueMs: number | null
  readonly deadLetters: number
}

async function listBatches(
  db: Kysely<JournalTables>,
  { partner, state, sinceMs, before, limit }: BatchFilter,
): Promise<readonly BatchSummary[]> {
  const hasState = state === undefined ? sql`1 = 1` : sql`b.${sql.ref(stateColumns[state])} > 0`
  const condition = sql`${isOf('b.partner', partner)} and ${isOf('b.received_ms', sinceMs, '>=')}
    and ${isOf('b.id', before, '<')} and ${hasState}`
  return readSummaries(db, condition, limit)
}

async function readSummaries(
  db: Kysely<JournalTables>,
  condition: RawBuilder<unknown>,
  limit: number,
): Promise<readonly BatchSummary[]> {
  const { rows } = await sql<SummaryRow>`select b.id as batch, b.partner, b.received_ms as "receivedMs",
      (select min(r.retry) from journal_records r where r.batch = b.id and ${isDue('r.')}) as "nextDueMs",
      (select count(*) from journal_records r where r.batch = b.id and r.dead_letter = 1) as "deadLetters", ${sql.raw(selectStates('b.'))}
    from journal_batches b where ${condition} order by b.id desc limit ${limit}`.execute(db)
  return rows.map(({ batch, partner, receivedMs, deadLetters, nextDueMs, ...counts }) => {
    const states = ofEachState((state) => counts[state])
    const records = recordStates.reduce((sum, state) => sum + states[state], 0)
    return { batch, partner, receivedMs, records, states, nextDueMs: nextDueMs ?? undefined, deadLetters }
  })
}

async function readReport(db: Kysely<JournalTables>, batch: number): Promise<BatchReport | undefined> {
  const [summary] = await readSummaries(db, sql`b.id = ${batch}`, 1)
  return summary && { ...summary, parts: await listRecords(db, sql`r.batch = ${batch}`) }
}

interface ListedRow extends RecordRef {
  readonly partner: string
  readonly receivedMs: number
  readonly state: number
  readonly reason: string | null
  readonly retry: number | null
  readonly attempts: number
  readonly superseded: number
  readonly deadLetter: number
  readonly settledMs: number | null
}

const listed = sql`journal_records r join journal_batches b on b.id = r.batch`

const listRecords = (
  db: Kysely<JournalTables>,
  condition: RawBuilder<unknown>,
  limit = Number.MAX_SAFE_INTEGER,
): Promise<readonly RecordSummary[]> =>
  readRecordSummaries(db, listed, sql`where ${condition} order by r.batch, r.position limit ${limit}`)

/**
 * Returns summaries of records. `from` is SQL that joins the records as `r` with their batches as `b`. `rest` is the SQL after `from`.
 * `more` adds columns, as SQL that begins with a comma.
 */
export async function readRecordSummaries<More extends object = object>(
  db: Kysely<JournalTables>,
  from: RawBuilder<unknown>,
  rest: RawBuilder<unknown>,
  more: RawBuilder<unknown> = sql``,
): Promise<readonly (RecordSummary & More)[]> {
  const { rows } = await sql<
    ListedRow & More
  >`select r.batch, r.position, b.partner, b.received_ms as "receivedMs",
      r.state, r.reason, r.retry, r.attempts, r.superseded, r.dead_letter as "deadLetter", r.settled_ms as "settledMs" ${more}
    from ${from} ${rest}`.execute(db)
  return rows.map((row) => {
    const state = recordStates[row.state] ?? 'unknown'
    const reason = row.reason ?? undefined
    const deadLetter = row.deadLetter === 1
    return {
      ...row,
      state,
      reason,
      retry: toRetry(row.retry),
      superseded: row.superseded === 1,
      deadLetter,
      settledMs: row.settledMs ?? undefined,
      remedy: deadLetter ? formatCause(describeCause(state, reason)) : undefined,
    }
  })
}

/** Returns false if a state has more stored records than its total, or if an open record is not stored. */
export const fitTotals = (totals: States, kept: States): boolean =>
  kept.open === totals.open && recordStates.every((state) => kept[state] <= totals[state])

function checkBalances(db: Kysely<JournalTables>): Promise<readonly CheckedBalance[]> {
  const reading = db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only')
  return reading.execute(async (at) => {
    const { rows } = await sql<{ partner: string; state: number; n: number }>`
      select b.partner, r.state, count(*) as n from journal_records r join journal_batches b on b.id = r.batch
      group by b.partner, r.state`.execute(at)
    const counted = recordStates.map(
      (state) => `sum(case when state = ${stateCodes[state]} then 1 else 0 end) as ${stateColumns[state]}`,
    )
    const differs = ['active', ...Object.values(stateColumns)].map(
      (column) => `b.${column} <> coalesce(r.${column}, 0)`,
    )
    const { rows: miscounted } = await sql<{
      partner: string
    }>`select distinct b.partner from journal_batches b
      left join (select batch, sum(active) as active, ${sql.raw(counted.join())} from journal_records group by batch) r
      on r.batch = b.id where ${sql.raw(differs.join(' or '))}`.execute(at)
    const wrong = new Set(miscounted.map(({ partner }) => partner))
    const balances = await readBalances(at)
    return balances.map((balance) => {
      const count = (state: RecordState): number =>
        rows.find((row) => row.partner === balance.partner && row.state === stateCodes[state])?.n ?? 0
      const kept = ofEachState(count)
      return { ...balance, kept, holds: fitTotals(balance, kept) && !wrong.has(balance.partner) }
    })
  })
}

async function makeDue(
  { exclusively }: Store,
  nowMs: number,
  batch: number | undefined,
  positions: readonly number[] | undefined,
): Promise<readonly DueRecords[]> {
  const soon = sql.lit(Math.floor(nowMs))
  const { rows } = await exclusively((db) =>
    sql<RecordRef>`update journal_records set retry = case when retry > ${soon} then ${soon} else retry end
      where ${isDue()} and ${isOf('batch', batch)} and ${isAmong(positions)} returning batch, position`.execute(
      db,
    ),
  )
  return toDueRecords(rows.toSorted((one, other) => one.batch - other.batch || one.position - other.position))
}

async function dismissDeadLetters(
  { exclusively }: Store,
  batch: number,
  positions: readonly number[] | undefined,
): Promise<number> {
  const { numAffectedRows = 0n } = await exclusively((db) =>
    sql`update journal_records set dead_letter = 0
      where batch = ${batch} and dead_letter = 1 and ${isAmong(positions)}`.execute(db),
  )
  return Number(numAffectedRows)
}
