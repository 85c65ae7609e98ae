import { sql } from 'kysely'

import { type RecordState, recordStates } from '../../journal/index.ts'
import { addCounts, type Counted } from './counts.ts'
import type { ConsoleDatabase } from './open-database.ts'
import type { StateCounts } from './port.ts'
import { type Db, type Dialect, rowsOf, tableOf } from './schema.ts'

/** Batches of one transaction. */
const STEP = 100
/** Batches with active records that were received within this time are looked at in each pass, all others with every `SLOW`th. */
const RECENT_MS = 300_000
const SLOW = 30

interface CountedBatch extends StateCounts {
  readonly batch: number
  readonly partner: string
  readonly receivedMs: number
}

/** Of no state a record. */
export const none: StateCounts = { open: 0, confirmed: 0, refused: 0, unknown: 0, parked: 0 }

/** Creates what counts the records of batches by the time of receipt and by state, and follows them until they are final. */
export function createBatchCounting({ dialect, exclusively }: ConsoleDatabase) {
  let passes = 0
  return {
    /** Counts the next batches that are new; true: there may be more. */
    countNew: () =>
      exclusively(async (db) => {
        const heads = await rowsOf(
          db,
          sql<
            CountedBatch & { active: number }
          >`select id as batch, partner, received_ms as "receivedMs", active
            from journal_batches where id > (select last_batch from console_index) order by id limit ${STEP}`,
        )
        const last = heads.at(-1)
        if (last === undefined) return false
        const states = await readStates(db, dialect, heads)
        const rows = heads.map((head) => ({ ...head, ...(states.get(head.batch) ?? none) }))
        const table = tableOf(
          dialect,
          { batch: 'bigint', partner: 'text', received_ms: 'bigint', active: 'integer', ...stateColumns },
          rows.map((row) => ({ ...row, received_ms: row.receivedMs })),
        )
        await sql`insert into console_batches (batch, partner, received_ms, active, ${stateNames})
          select batch, partner, received_ms, active, ${stateNames} from ${table}`.execute(db)
        await addCounts(db, dialect, rows.flatMap((row) => changesOf(row, none, row)), Date.now()) // prettier-ignore
        await sql`update console_index set last_batch = ${last.batch}`.execute(db)
        return heads.length === STEP
      }),
    /** Counts batches anew whose records have changed; true: there may be more. */
    follow: () =>
      exclusively(async (db) => {
        passes += 1
        const sinceMs = passes % SLOW === 0 ? 0 : Date.now() - RECENT_MS
        const changed = await rowsOf(
          db,
          sql<CountedBatch & { found: number | null; nowActive: number | null }>`
            select c.batch, c.partner, c.received_ms as "receivedMs", c.open, c.confirmed, c.refused, c.unknown, c.parked,
              b.id as found, b.active as "nowActive"
            from console_batches c left join journal_batches b on b.id = c.batch
            where c.active > 0 and c.received_ms >= ${sinceMs} and (b.id is null or b.open <> c.open or b.active <> c.active)
            order by c.received_ms limit ${STEP}`,
        )
        if (changed.length === 0) return false
        const states = await readStates(db, dialect, changed)
        const rows = changed.map((before) => {
          // Denied before anything was applied: the journal counts its records as refused, and keeps nothing else.
          const forgotten = { ...before, open: 0, refused: before.refused + before.open }
          const now = before.found === null ? forgotten : (states.get(before.batch) ?? before)
          const { batch, nowActive, confirmed } = before
          const has_marks = now.confirmed > confirmed ? 1 : 0
          return { before, now, row: { batch, ...pickStates(now), active: nowActive ?? 0, has_marks } }
        })
        const table = tableOf(
          dialect,
          { batch: 'bigint', active: 'integer', has_marks: 'integer', ...stateColumns },
          rows.map(({ row }) => row),
        )
        const set = recordStates.map((state) => `${state} = u.${state}`).join()
        await sql`update console_batches set active = u.active, indexed = case when u.has_marks = 1 and indexed = 1 then 2 else indexed end,
          ${sql.raw(set)} from ${table} where console_batches.batch = u.batch`.execute(db)
        await addCounts(db, dialect, rows.flatMap(({ before, now }) => changesOf(before, before, now)), Date.now()) // prettier-ignore
        await noteSuperseded(db, dialect, changed)
        return changed.length === STEP
      }),
  }
}

const stateColumns = Object.fromEntries(recordStates.map((state) => [state, 'integer'])) as Readonly<
  Record<RecordState, 'integer'>
>
const stateNames = sql.raw(recordStates.join())

const pickStates = ({ open, confirmed, refused, unknown, parked }: StateCounts): StateCounts => ({
  ...{ open, confirmed, refused, unknown, parked },
})

/** What moves from state to state, as counts of the time of receipt. */
const changesOf = (
  { partner, receivedMs }: Pick<CountedBatch, 'partner' | 'receivedMs'>,
  before: StateCounts,
  now: StateCounts,
): readonly Counted[] =>
  recordStates.map((state) => ({
    atMs: receivedMs,
    name: `marks ${state} ${partner}`,
    count: now[state] - before[state],
  }))

async function readStates(
  db: Db,
  dialect: Dialect,
  batches: readonly { readonly batch: number }[],
): Promise<ReadonlyMap<number, StateCounts>> {
  const states = new Map<number, Record<RecordState, number>>()
  const table = tableOf(dialect, { batch: 'bigint' }, batches.map(({ batch }) => ({ batch }))) // prettier-ignore
  const rows = await rowsOf(
    db,
    sql<{ batch: number; state: number; records: number }>`select r.batch, r.state, count(*) as records
      from ${table} join journal_records r on r.batch = u.batch group by r.batch, r.state`,
  )
  for (const { batch, state, records } of rows) {
    const own = states.get(batch) ?? { ...none }
    const name = recordStates[state]
    if (name !== undefined) own[name] = records
    states.set(batch, own)
  }
  return states
}

/** Others settle what gives way to a newer mark: it is seen here first. */
async function noteSuperseded(
  db: Db,
  dialect: Dialect,
  batches: readonly { readonly batch: number }[],
): Promise<void> {
  const table = tableOf(dialect, { batch: 'bigint' }, batches.map(({ batch }) => ({ batch }))) // prettier-ignore
  const rows = await rowsOf(
    db,
    sql<{ batch: number; position: number }>`select r.batch, r.position from ${table}
      join journal_records r on r.batch = u.batch where r.superseded = 1 order by r.batch, r.position`,
  )
  for (const [batch, records] of Map.groupBy(rows, (row) => row.batch)) {
    const positions = JSON.stringify(toRanges(records.map(({ position }) => position)))
    // The newest row has all of them.
    await sql`delete from console_steps where batch = ${batch} and kind = 'superseded' and instance is null`.execute(db) // prettier-ignore
    await sql`insert into console_steps (batch, at_ms, kind, positions) values (${batch}, ${Date.now()}, 'superseded', ${positions})`.execute(db) // prettier-ignore
  }
}

/** More ranges are kept as a single one, from the first to the last. */
const MAX_RANGES = 500

/** Positions as ranges, both ends included. */
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
