import { sql } from 'kysely'

import { ofEachState, recordStates, selectStates, stateColumns } from '../../journal/index.ts'
import { addCounts, type Counted } from './counts.ts'
import type { ConsoleDatabase } from './open-database.ts'
import type { StateCounts } from './port.ts'
import { type Db, type Dialect, rowsOf, tableOf } from './schema.ts'

const STEP = 100
/** Active batches are checked in each pass if they were received within this time, and in every `SLOW`th pass if they are older. */
const RECENT_MS = 300_000
const SLOW = 30

interface CountedBatch extends StateCounts {
  readonly batch: number
  readonly partner: string
  readonly received_ms: number
}

export const none: StateCounts = ofEachState(() => 0)

/** Creates the functions that count records by time of receipt and by state, and update the counts until the states are final. */
export function createBatchCounting({ dialect, exclusively }: ConsoleDatabase) {
  let passes = 0
  return {
    /** Counts new batches. Returns true if there may be more new batches. */
    countNew: () =>
      exclusively(async (db) => {
        const heads = await rowsOf<CountedBatch & { active: number }>(db)`
          select id as batch, partner, received_ms, active
          from journal_batches where id > (select last_batch from console_index) order by id limit ${STEP}`
        const last = heads.at(-1)
        if (last === undefined) return false
        const states = await readStates(db, dialect, heads)
        const rows = heads.map((head) => ({ ...head, ...(states.get(head.batch) ?? none) }))
        const columns = {
          batch: 'bigint',
          partner: 'text',
          received_ms: 'bigint',
          active: 'integer',
        } as const
        const table = tableOf(dialect, { ...columns, ...countColumns }, rows.map(toCounts))
        await sql`insert into console_batches (batch, partner, received_ms, active, ${stateNames})
          select batch, partner, received_ms, active, ${stateNames} from ${table}`.execute(db)
        await addCounts(db, dialect, rows.flatMap((row) => changesOf(row, none, row))) // prettier-ignore
        await sql`update console_index set last_batch = ${last.batch}`.execute(db)
        return heads.length === STEP
      }),
    /** Counts batches again if their records have changed. Returns true if there may be more such batches. */
    follow: () =>
      exclusively(async (db) => {
        passes += 1
        const sinceMs = passes % SLOW === 0 ? 0 : Date.now() - RECENT_MS
        const changed = await rowsOf<CountedBatch & { readonly nowActive: number | undefined }>(db)`
          select c.batch, c.partner, c.received_ms, ${sql.raw(selectStates('c.'))}, b.active as "nowActive"
          from console_batches c left join journal_batches b on b.id = c.batch
          where c.active > 0 and c.received_ms >= ${sinceMs} and (b.id is null or b.open <> c.open or b.active <> c.active)
          order by c.received_ms limit ${STEP}`
        if (changed.length === 0) return false
        const states = await readStates(db, dialect, changed)
        const rows = changed.map((before) => {
          // The journal deletes a batch whose credentials V3 denied before anything was applied, and counts its records as refused.
          const forgotten = { ...before, open: 0, refused: before.refused + before.open }
          const { batch, nowActive: active, confirmed } = before
          const now = active === undefined ? forgotten : (states.get(batch) ?? before)
          const has_marks = now.confirmed > confirmed ? 1 : 0
          return { before, now, row: { ...now, batch, active: active ?? 0, has_marks } }
        })
        const columns = { batch: 'bigint', active: 'integer', has_marks: 'integer', ...countColumns } as const
        const table = tableOf(dialect, columns, rows.map(({ row }) => toCounts(row))) // prettier-ignore
        const set = Object.values(stateColumns)
          .map((column) => `${column} = u.${column}`)
          .join()
        await sql`update console_batches set active = u.active, indexed = case when u.has_marks = 1 and indexed = 1 then 2 else indexed end,
          ${sql.raw(set)} from ${table} where console_batches.batch = u.batch`.execute(db)
        await addCounts(db, dialect, rows.flatMap(({ before, now }) => changesOf(before, before, now))) // prettier-ignore
        await recordSuperseded(db, dialect, changed)
        return changed.length === STEP
      }),
  }
}

const countColumns = Object.fromEntries(
  Object.values(stateColumns).map((column) => [column, 'integer' as const]),
)
const stateNames = sql.raw(Object.values(stateColumns).join())
const toCounts = <Row extends StateCounts>(row: Row) => ({
  ...row,
  ...Object.fromEntries(recordStates.map((state) => [stateColumns[state], row[state]])),
})

const changesOf = (batch: CountedBatch, before: StateCounts, now: StateCounts): readonly Counted[] =>
  recordStates.map((state) => ({
    atMs: batch.received_ms,
    name: `marks ${state} ${batch.partner}`,
    count: now[state] - before[state],
  }))

type Batches = readonly Pick<CountedBatch, 'batch'>[]

async function readStates(db: Db, dialect: Dialect, batches: Batches): Promise<Map<number, StateCounts>> {
  const states = new Map<number, StateCounts>()
  const rows = await rowsOf<{ batch: number; state: number; records: number }>(db)`
    select r.batch, r.state, count(*) as records from ${tableOf(dialect, { batch: 'bigint' }, batches)}
    join journal_records r on r.batch = u.batch group by r.batch, r.state`
  for (const { batch, state, records } of rows)
    states.set(batch, { ...(states.get(batch) ?? none), [recordStates[state] ?? 'unknown']: records })
  return states
}

/** Stores one step per batch for its superseded records. Other batches supersede them, so no journal call for this batch reports it. */
async function recordSuperseded(db: Db, dialect: Dialect, batches: Batches): Promise<void> {
  const rows = await rowsOf<{ batch: number; position: number }>(db)`
    select r.batch, r.position from ${tableOf(dialect, { batch: 'bigint' }, batches)}
    join journal_records r on r.batch = u.batch where r.superseded = 1 order by r.batch, r.position`
  for (const [batch, records] of Map.groupBy(rows, (row) => row.batch)) {
    const positions = JSON.stringify(toRanges(records.map(({ position }) => position)))
    // The new row replaces the old row, since the new row lists all superseded records of the batch.
    await sql`delete from console_steps where batch = ${batch} and kind = 'superseded' and instance is null`.execute(db) // prettier-ignore
    await sql`insert into console_steps (batch, at_ms, kind, positions) values (${batch}, ${Date.now()}, 'superseded', ${positions})`.execute(db) // prettier-ignore
  }
}

/** The maximum number of ranges of a step. If there are more, a single range from the first position to the last is stored. */
const MAX_RANGES = 500

/** Converts positions to ranges that include both ends. */
export function toRanges(positions: Iterable<number>): readonly (readonly [number, number])[] {
  const ranges: [number, number][] = []
  for (const position of [...positions].sort((one, other) => one - other)) {
    const last = ranges.at(-1)
    if (last !== undefined && position <= last[1] + 1) last[1] = position
    else ranges.push([position, position])
  }
  const [first, last] = [ranges[0], ranges.at(-1)]
  return ranges.length <= MAX_RANGES || first === undefined || last === undefined ? ranges : [[first[0], last[1]]] // prettier-ignore
}
