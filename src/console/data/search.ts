import { type RawBuilder, sql } from 'kysely'

import {
  isDue,
  NO_KEY,
  readRecordSummaries,
  type RecordState,
  recordStates,
  stateCodes,
} from '../../journal/index.ts'
import { none } from './count-batches.ts'
import type { ConsoleDatabase } from './open-database.ts'
import type {
  BatchDetails,
  BatchRow,
  RecordRow,
  RecordRows,
  RecordsPage,
  Scope,
  Search,
  SearchResult,
  Step,
  WaitingFilter,
  WaitingRows,
} from './port.ts'
import { type Db, rowsOf } from './schema.ts'

type Condition = RawBuilder<unknown>

const [SEARCHED, MAX_SEARCHED] = [50, 500]
const [LISTED, MAX_LISTED] = [100, 1_000]
const MAX_STEPS = 500
const MAX_COUNTED = 10_000

/** Finds batches or records, newest first. */
export async function findAll({ db }: ConsoleDatabase, search: Search, scope: Scope): Promise<SearchResult> {
  const limit = Math.min(search.limit ?? SEARCHED, MAX_SEARCHED)
  const isInside = [search.contentId, search.learner, search.event, search.mark].some((one) => one !== undefined) // prettier-ignore
  const [one, other] = (search.after ?? '').split('.').map(Number)
  const after = one !== undefined && other !== undefined ? ([one, other] as const) : undefined
  if (isInside) {
    const records = await findRecords(db, search, scope, after, limit + 1)
    const last = records.length > limit ? records[limit - 1] : undefined
    return { kind: 'records', records: records.slice(0, limit), next: last && `${last.batch}.${last.position}` } // prettier-ignore
  }
  const batches = await findBatches(db, search, scope, after, limit + 1)
  const last = batches.length > limit ? batches[limit - 1] : undefined
  return { kind: 'batches', batches: batches.slice(0, limit), next: last && `${last.batch}.0` }
}

type After = readonly [number, number] | undefined

async function findBatches(db: Db, search: Search, scope: Scope, after: After, limit: number) {
  const { batch, boundary, state, fromMs, untilMs, partner } = search
  const conditions = [
    ...all('c.partner', scope, partner),
    ...when(batch, (number) => sql`c.batch = ${number}`),
    ...when(boundary, (text) => sql`c.boundary = ${text}`),
    ...when(state, (name) => sql`c.${sql.ref(name)} > 0`),
    ...within('c', fromMs, untilMs),
    ...when(after, ([number]) => sql`c.batch < ${number}`),
  ]
  const rows = await rowsOf(
    db,
    sql<BatchCounts>`select c.batch, c.partner, c.received_ms as "receivedMs", c.boundary,
        c.open, c.confirmed, c.refused, c.unknown, c.parked, b.on_v2 as "onV2"
      from console_batches c join journal_batches b on b.id = c.batch
      ${where(conditions)} order by c.batch desc limit ${limit}`,
  )
  return rows.map(toBatchRow)
}

/**
 * That `received_ms` of a table is within a time, with the numbers that batches of that time have: these stand in the order of the list, so
 * that the database begins and ends there. `+ 0` keeps it from going through all batches in the order of their numbers instead.
 */
function within(
  table: string,
  fromMs: number | undefined,
  untilMs: number | undefined,
): readonly Condition[] {
  const timeOf = (name: string): readonly Condition[] => [
    ...when(fromMs, (ms) => sql`${sql.ref(`${name}.received_ms`)} >= ${ms}`),
    ...when(untilMs, (ms) => sql`${sql.ref(`${name}.received_ms`)} < ${ms}`),
  ]
  const own = timeOf(table)
  if (own.length === 0) return []
  const batch = sql.ref(table === 'b' ? 'k.batch' : `${table}.batch`)
  const bound = (name: string) => sql`(select ${sql.raw(name)}(t.batch + 0) from console_batches t ${where(timeOf('t'))})` // prettier-ignore
  return [...own, sql`${batch} between ${bound('min')} and ${bound('max')}`]
}

interface BatchCounts extends Readonly<Record<RecordState, number>> {
  readonly batch: number
  readonly partner: string
  readonly receivedMs: number
  readonly boundary: string | null
  readonly onV2: number
}

function toBatchRow(row: BatchCounts): BatchRow {
  const { open, confirmed, refused, unknown, parked, onV2, boundary, batch, partner, receivedMs } = row
  return {
    ...{ batch, partner, receivedMs },
    boundary: boundary ?? undefined,
    servedBy: onV2 === 1 ? 'v2' : 'v3',
    records: open + confirmed + refused + unknown + parked,
    states: { open, confirmed, refused, unknown, parked },
  }
}

function findRecords(db: Db, search: Search, scope: Scope, after: After, limit: number) {
  const { batch, boundary, contentId, learner, event, mark, state, fromMs, untilMs, partner } = search
  const hashes = Object.entries({ mark, learner, event }).flatMap(([name, hash]) => (hash === undefined ? [] : [[name, toHash(hash)] as const])) // prettier-ignore
  // Hashes are rare, Content-IDs are not: an expression that is no column keeps the database from their index, as it keeps it from a second hash.
  const notByIndex = (column: string, value: number | string): Condition =>
    typeof value === 'string'
      ? sql`${sql.ref(column)} || '' = ${value}`
      : sql`${sql.ref(column)} + 0 = ${value}`
  const conditions = [
    ...all('b.partner', scope, partner),
    ...hashes.map(([name, hash], at) => (at === 0 ? sql`${sql.ref(`k.${name}`)} = ${hash}` : notByIndex(`k.${name}`, hash))), // prettier-ignore
    ...when(contentId, (text) =>
      hashes.length > 0 ? notByIndex('k.content_id', text) : sql`k.content_id = ${text}`,
    ),
    ...when(batch, (number) => sql`k.batch = ${number}`),
    ...when(boundary, (text) => sql`k.batch in (select c.batch from console_batches c where c.boundary = ${text})`), // prettier-ignore
    ...when(state, (name) => sql`r.state = ${stateCodes[name]} and c.${sql.ref(name)} > 0`),
    ...within('b', fromMs, untilMs),
    ...when(after, ([number, position]) => sql`(k.batch, k.position) < (${number}, ${position})`),
    // Erased, and still to be erased here.
    ...(hashes.length > 0 ? [sql`r.key <> ${NO_KEY}`] : []),
  ]
  // Batches without a record of the state are passed over. `+ 0`: records of the journal are looked up one by one, never gone through.
  const from = sql`console_records k ${state === undefined ? sql`` : sql`join console_batches c on c.batch = k.batch`}
    join journal_records r on r.batch = k.batch + 0 and r.position = k.position
    join journal_batches b on b.id = k.batch`
  return readRecords(db, from, conditions, sql`order by k.batch desc, k.position desc limit ${limit}`)
}

const toHash = (text: string): number => (/^[0-9a-f]{13}$/.test(text) ? Number.parseInt(text, 16) : -1)

async function readRecords(
  db: Db,
  from: Condition,
  conditions: readonly Condition[],
  order: Condition,
): Promise<readonly RecordRow[]> {
  const rows = await readRecordSummaries<{ instance: number; contentId: string | null }>(
    db,
    from,
    sql`${where(conditions)} ${order}`,
    sql`, b.instance, (select k.content_id from console_records k
      where k.batch = r.batch and k.position = r.position) as "contentId"`,
  )
  return rows.map((row) => ({ ...row, contentId: row.contentId ?? undefined }))
}

const listed = sql`journal_records r join journal_batches b on b.id = r.batch`

/** A page of the records of a batch. */
export async function readPage(
  { db }: ConsoleDatabase,
  batch: number,
  { from = 0, limit = LISTED, state }: RecordsPage,
): Promise<RecordRows> {
  const rows = Math.min(limit, MAX_LISTED)
  const conditions = [
    sql`r.batch = ${batch}`,
    sql`r.position >= ${from}`,
    ...when(state, (name) => sql`r.state = ${stateCodes[name]}`),
  ]
  const records = await readRecords(db, listed, conditions, sql`order by r.position limit ${rows + 1}`)
  return { records: records.slice(0, rows), next: records[rows]?.position }
}

interface DetailsRow extends Omit<BatchCounts, RecordState> {
  readonly instance: number
  readonly answered: number
  readonly hasRequest: number
  readonly unreadable: BatchDetails['unreadable'] | null
}

export async function readDetails(
  { db }: ConsoleDatabase,
  batch: number,
  scope: Scope,
): Promise<BatchDetails | undefined> {
  const conditions = [sql`b.id = ${batch}`, ...all('b.partner', scope, undefined)]
  const [row] = await rowsOf(
    db,
    sql<DetailsRow>`select b.id as batch, b.partner, b.received_ms as "receivedMs", b.on_v2 as "onV2", b.instance, b.answered,
        c.boundary, c.unreadable, case when b.on_v2 = 0 and b.bytes > 0 then 1 else 0 end as "hasRequest"
      from journal_batches b left join console_batches c on c.batch = b.id ${where(conditions)}`,
  )
  if (row === undefined) return undefined
  const counts = { ...none }
  let deadLetters = 0
  const states = await rowsOf(
    db,
    sql<{
      state: number
      records: number
      letters: number
    }>`select state, count(*) as records, sum(dead_letter) as letters
      from journal_records where batch = ${batch} group by state`,
  )
  for (const { state, records, letters } of states) {
    counts[recordStates[state] ?? 'unknown'] += records
    deadLetters += letters
  }
  return {
    ...toBatchRow({ ...row, ...counts }),
    instance: row.instance,
    answered: row.answered === 1,
    hasRequest: row.hasRequest === 1,
    deadLetters,
    unreadable: row.unreadable ?? undefined,
    timeline: await readTimeline(db, batch),
  }
}

async function readTimeline(db: Db, batch: number): Promise<readonly Step[]> {
  const rows = await rowsOf(
    db,
    sql<
      Omit<Step, 'positions' | 'reason' | 'instance'> & {
        positions: string
        reason: string | null
        instance: number | null
      }
    >`
      select at_ms as "atMs", kind, instance, positions, reason from console_steps where batch = ${batch}
      order by at_ms limit ${MAX_STEPS}`,
  )
  return rows.map(({ positions, reason, instance, ...step }) => ({
    ...step,
    instance: instance ?? undefined,
    reason: reason ?? undefined,
    // As `keepSteps` wrote it.
    positions: JSON.parse(positions) as Step['positions'],
  }))
}

/** Dead letters, or records that wait for a time, oldest first. */
export async function readWaiting(
  { db }: ConsoleDatabase,
  { kind, partner, reason, after = '', limit = LISTED }: WaitingFilter,
  scope: Scope,
): Promise<WaitingRows> {
  const rows = Math.min(limit, MAX_LISTED)
  const [batch, position] = after.split('.').map(Number)
  const own = [kind === 'deadLetters' ? sql`r.dead_letter = 1` : isDue('r.'), ...all('b.partner', scope, partner)] // prettier-ignore
  const conditions = [
    ...own,
    ...when(reason, (text) => sql`r.reason = ${text}`),
    ...(batch === undefined || position === undefined ? [] : [sql`(r.batch, r.position) > (${batch}, ${position})`]), // prettier-ignore
  ]
  const records = await readRecords(
    db,
    listed,
    conditions,
    sql`order by r.batch, r.position limit ${rows + 1}`,
  )
  const reasons = await rowsOf(
    db,
    sql<{ reason: string; records: number }>`select coalesce(reason, '') as reason, count(*) as records from (
        select r.reason from journal_records r join journal_batches b on b.id = r.batch ${where(own)} limit ${MAX_COUNTED}) s
      group by reason order by records desc, reason`,
  )
  const last = records.length > rows ? records[rows - 1] : undefined
  return { records: records.slice(0, rows), reasons, next: last && `${last.batch}.${last.position}` }
}

const where = (conditions: readonly Condition[]): Condition =>
  conditions.length === 0 ? sql`` : sql`where ${sql.join(conditions, sql` and `)}`

function when<Value>(value: Value | undefined, condition: (value: Value) => Condition): readonly Condition[] {
  return value === undefined ? [] : [condition(value)]
}

/** That a partner is the one that is asked for, and in the scope. */
function all(column: string, scope: Scope, partner: string | undefined): readonly Condition[] {
  const own = when(partner, (id) => sql`${sql.ref(column)} = ${id}`)
  if (scope === 'all') return own
  return [...own, scope.length === 0 ? sql`1 = 0` : sql`${sql.ref(column)} in (${sql.join(scope)})`]
}
