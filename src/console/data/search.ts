import { type RawBuilder, sql } from 'kysely'

import {
  isDue,
  NO_KEY,
  ofEachState,
  readRecordSummaries,
  type RecordState,
  recordStates,
  selectStates,
  stateCodes,
  stateColumns,
} from '../../journal/index.ts'
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
  StateCounts,
  Step,
  WaitingFilter,
  WaitingRows,
} from './port.ts'
import { type Db, rowsOf } from './schema.ts'
import { toRanges } from './steps.ts'

type Condition = RawBuilder<unknown>

const [SEARCHED, LISTED] = [50, 100]
const MAX_STEPS = 500
const MAX_COUNTED = 10_000
const MAX_POSITION = 2_147_483_647

export async function findAll({ db }: ConsoleDatabase, search: Search, scope: Scope): Promise<SearchResult> {
  const { limit = SEARCHED } = search
  const isInside = [search.contentId, search.learner, search.event, search.mark].some((one) => one !== undefined) // prettier-ignore
  const after = placeIn(search.after)
  if (isInside) {
    const records = await findRecords(db, search, scope, after, limit + 1)
    return { kind: 'records', records: records.slice(0, limit), next: nextOf(records, limit) }
  }
  const batches = await findBatches(db, search, scope, after, limit + 1)
  return { kind: 'batches', batches: batches.slice(0, limit), next: nextOf(batches, limit) }
}

type After = readonly [number, number] | undefined

function placeIn(after = ''): After {
  // Accepts only numbers that fit the columns, because the address of a page may contain any text and PostgreSQL rejects other values.
  const [, batch, position] = /^(\d{1,15})\.(\d{1,9})$/.exec(after) ?? []
  return batch === undefined ? undefined : [Number(batch), Number(position)]
}

/** Returns the parameter `after` of the next page, or `undefined` if this page is the last. */
function nextOf(
  rows: readonly { readonly batch: number; readonly position?: number }[],
  limit: number,
): string | undefined {
  const last = rows.length > limit ? rows[limit - 1] : undefined
  return last && `${last.batch}.${last.position ?? 0}`
}

async function findBatches(db: Db, search: Search, scope: Scope, after: After, limit: number) {
  const { batch, boundary, state, partner } = search
  const conditions = [
    ...ofPartners('b.partner', scope, partner),
    ...when(batch, (number) => sql`b.id = ${number}`),
    ...when(boundary, (text) => sql`c.boundary = ${text}`),
    ...when(state, hasState),
    ...within('b.id', search),
    ...when(after, ([number]) => sql`b.id < ${number}`),
  ]
  const rows = await rowsOf<HeadRow>(db)`
    select ${head} from ${heads} ${where(conditions)} order by b.id desc limit ${limit}`
  return rows.map(toBatchRow)
}

const hasState = (state: RecordState): Condition => sql`b.${sql.ref(stateColumns[state])} > 0`

/**
 * Restricts a search to a time of receipt by a range of batch numbers. Batches are numbered in the order of receipt, so a list in the order
 * of the numbers needs no other index.
 */
function within(batch: string, { fromMs, untilMs }: Search): readonly Condition[] {
  const numberFrom = (ms: number): Condition => sql`coalesce((select t.id from journal_batches t
    where t.received_ms >= ${ms} order by t.received_ms, t.id limit 1), ${Number.MAX_SAFE_INTEGER})`
  return [
    ...when(fromMs, (ms) => sql`${sql.ref(batch)} >= ${numberFrom(ms)}`),
    ...when(untilMs, (ms) => sql`${sql.ref(batch)} < ${numberFrom(ms)}`),
  ]
}

type HeadRow = StateCounts &
  Pick<BatchRow, 'batch' | 'partner' | 'receivedMs' | 'boundary'> & { readonly onV2: number }

const head = sql`b.id as batch, b.partner, b.received_ms as "receivedMs", b.on_v2 as "onV2", c.boundary, ${sql.raw(selectStates('b.'))}`
const heads = sql`journal_batches b left join console_batches c on c.batch = b.id`

function toBatchRow({ batch, partner, receivedMs, boundary, onV2, ...counts }: HeadRow): BatchRow {
  const states = ofEachState((state) => counts[state])
  const records = recordStates.reduce((sum, state) => sum + states[state], 0)
  return { batch, partner, receivedMs, boundary, servedBy: onV2 === 1 ? 'v2' : 'v3', records, states }
}

function findRecords(db: Db, search: Search, scope: Scope, after: After, limit: number) {
  const { batch, boundary, contentId, learner, event, mark, state, partner } = search
  const hashes = Object.entries({ mark, learner, event }).flatMap(([name, hash]) => (hash === undefined ? [] : [[name, toHash(hash)] as const])) // prettier-ignore
  // Wraps the column in an expression, so that the planner uses only the index of the most selective hash.
  const notByIndex = (column: string, value: number | string): Condition =>
    typeof value === 'string'
      ? sql`${sql.ref(column)} || '' = ${value}`
      : sql`${sql.ref(column)} + 0 = ${value}`
  const conditions = [
    ...ofPartners('b.partner', scope, partner),
    ...hashes.map(([name, hash], at) => (at === 0 ? sql`${sql.ref(`k.${name}`)} = ${hash}` : notByIndex(`k.${name}`, hash))), // prettier-ignore
    ...when(contentId, (text) =>
      hashes.length > 0 ? notByIndex('k.content_id', text) : sql`k.content_id = ${text}`,
    ),
    ...when(batch, (number) => sql`k.batch = ${number}`),
    ...when(boundary, (text) => sql`k.batch in (select c.batch from console_batches c where c.boundary = ${text})`), // prettier-ignore
    ...when(state, (name) => sql`r.state = ${stateCodes[name]} and ${hasState(name)}`),
    ...within('k.batch', search),
    ...when(after, ([number, position]) => sql`(k.batch, k.position) < (${number}, ${position})`),
    // Leaves out records that the journal has erased but whose hashes the console has not erased yet.
    ...(hashes.length > 0 ? [sql`r.key <> ${NO_KEY}`] : []),
  ]
  // `+ 0` makes the planner look up journal records one by one and not scan them.
  const from = sql`console_records k
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
  const own = sql`, b.instance, (select k.content_id from console_records k
    where k.batch = r.batch and k.position = r.position) as "contentId"`
  const rest = sql`${where(conditions)} ${order}`
  const rows = await readRecordSummaries<{ instance: number; contentId: string | null }>(db, from, rest, own)
  return rows.map((row) => ({ ...row, contentId: row.contentId ?? undefined }))
}

const listed = sql`journal_records r join journal_batches b on b.id = r.batch`

export async function readPage(
  { db }: ConsoleDatabase,
  batch: number,
  { from = 0, limit = LISTED, state }: RecordsPage,
): Promise<RecordRows> {
  const conditions = [
    sql`r.batch = ${batch}`,
    sql`r.position >= ${Math.min(from, MAX_POSITION)}`,
    ...when(state, (name) => sql`r.state = ${stateCodes[name]}`),
  ]
  const records = await readRecords(db, listed, conditions, sql`order by r.position limit ${limit + 1}`)
  return { records: records.slice(0, limit), next: records[limit]?.position }
}

type DetailsRow = HeadRow &
  Pick<BatchDetails, 'instance' | 'unreadable' | 'deadLetters'> &
  Record<'answered' | 'hasRequest', number>

export async function readDetails(
  { db }: ConsoleDatabase,
  batch: number,
  scope: Scope,
): Promise<BatchDetails | undefined> {
  const conditions = [sql`b.id = ${batch}`, ...ofPartners('b.partner', scope)]
  const [row] = await rowsOf<DetailsRow>(db)`
    select ${head}, b.instance, b.answered, c.unreadable,
      case when b.on_v2 = 0 and b.bytes > 0 then 1 else 0 end as "hasRequest",
      (select count(*) from journal_records r where r.batch = b.id and r.dead_letter = 1) as "deadLetters"
    from ${heads} ${where(conditions)}`
  if (row === undefined) return undefined
  const { answered, hasRequest, instance, unreadable, deadLetters, ...own } = row
  return {
    ...toBatchRow(own),
    ...{ instance, unreadable, deadLetters },
    answered: answered === 1,
    hasRequest: hasRequest === 1,
    timeline: await readTimeline(db, batch),
  }
}

async function readTimeline(db: Db, batch: number): Promise<readonly Step[]> {
  const rows = await rowsOf<Omit<Step, 'positions'> & { readonly positions: string }>(db)`
    select min(at_ms) as "atMs", max(at_ms) as "lastMs", count(*) as times, kind, instance, positions, reason
    from console_steps where batch = ${batch} group by kind, instance, positions, reason
    order by min(at_ms) limit ${MAX_STEPS}`
  const superseded = await rowsOf<{ position: number; atMs: number }>(db)`
    select position, coalesce(settled_ms, 0) as "atMs" from journal_records where batch = ${batch} and superseded = 1`
  const ended = [...Map.groupBy(superseded, ({ atMs }) => atMs)].map(([atMs, own]): Step => ({
    ...{ atMs, lastMs: atMs, times: 1, kind: 'superseded', instance: undefined, reason: undefined },
    positions: toRanges(own.map(({ position }) => position)),
  }))
  // `keepSteps` wrote this JSON, so the cast is safe.
  const steps = rows.map((step) => ({ ...step, positions: JSON.parse(step.positions) as Step['positions'] }))
  return [...steps, ...ended].sort((one, other) => one.atMs - other.atMs).slice(0, MAX_STEPS)
}

export async function readWaiting(
  { db }: ConsoleDatabase,
  { kind, partner, reason, after }: WaitingFilter,
  scope: Scope,
): Promise<WaitingRows> {
  const seen = ofPartners('b.partner', scope, partner)
  const own = [waitingOf[kind], ...seen]
  // Joins the batches only if the partners are restricted.
  const waiting = seen.length === 0 ? sql`journal_records r` : listed
  const conditions = [
    ...own,
    ...when(reason, (text) => sql`r.reason = ${text}`),
    ...when(placeIn(after), ([batch, position]) => sql`(r.batch, r.position) > (${batch}, ${position})`),
  ]
  const order = sql`order by r.batch, r.position`
  const first = sql`(select r.* from ${waiting} ${where(conditions)} ${order} limit ${LISTED + 1}) r
    join journal_batches b on b.id = r.batch`
  const records = await readRecords(db, first, [], order)
  const counted = await rowsOf<{ reason: string; state: number; records: number }>(db)`
    select coalesce(reason, '') as reason, min(state) as state, count(*) as records from (
      select r.reason, r.state from ${waiting} ${where(own)} limit ${MAX_COUNTED}) s
    group by reason order by records desc, reason`
  const reasons = counted.map((row) => ({ ...row, state: recordStates[row.state] ?? 'unknown' }))
  return { records: records.slice(0, LISTED), reasons, next: nextOf(records, LISTED) }
}

const waitingOf: Readonly<Record<WaitingFilter['kind'], Condition>> = {
  deadLetters: sql`r.dead_letter = 1`,
  notApplied: sql`r.active = 1 and r.state = ${sql.lit(stateCodes.notApplied)}`,
  parked: isDue('r.'),
}

const where = (conditions: readonly Condition[]): Condition =>
  conditions.length === 0 ? sql`` : sql`where ${sql.join(conditions, sql` and `)}`

function when<Value>(value: Value | undefined, condition: (value: Value) => Condition): readonly Condition[] {
  return value === undefined ? [] : [condition(value)]
}

/** Joins conditions for the end of a `where` clause. */
export const andOf = (conditions: readonly Condition[]): Condition =>
  sql.join(conditions.map((condition) => sql`and ${condition}`), sql` `) // prettier-ignore

/** Restricts a search to the partners of a scope, and to one partner if a partner is given. */
export function ofPartners(column: string, scope: Scope, partner?: string): readonly Condition[] {
  const own = when(partner, (id) => sql`${sql.ref(column)} = ${id}`)
  if (scope === 'all') return own
  return [...own, scope.length === 0 ? sql`1 = 0` : sql`${sql.ref(column)} in (${sql.join(scope)})`]
}
