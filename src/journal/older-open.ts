import { type Kysely, type RawBuilder, sql } from 'kysely'

import type { OlderOpen, RecordRef } from './journal.ts'
import { isOpen } from './schema/record-sql.ts'
import { intactRecord } from './schema/row-sums.ts'
import type { JournalTables } from './schema/tables.ts'
import { fromPlace, placeOf } from './store/place.ts'

/** References in one statement: databases bound their parameters. */
const REFS_PER_STATEMENT = 1_000
const OPEN = sql.raw(isOpen())
const OPEN_OLDER = sql.raw(isOpen('o.'))
const NONE: readonly RecordRef[] = []

interface OlderRow {
  readonly batch: number
  readonly position: number
  readonly older: number | null
  readonly olderPosition: number
  readonly intact: number
}

const splitOlder = sql.raw(
  `${fromPlace('f.older').batch} as older, ${fromPlace('f.older').position} as "olderPosition"`,
)

/** SQL for the place of the nearest open record of the key of `r`: one step into the index of live records. */
const nearestOpen = (condition: RawBuilder<unknown>): RawBuilder<unknown> => sql`(
  select ${sql.raw(placeOf('o'))} from journal_records o
  where o.key = r.key and o.live = 1 and ${OPEN_OLDER} and ${condition}
  order by o.batch desc, o.position desc limit 1)`

/**
 * For each of the records the nearest older open one of its key, in any batch; undefined: there is none. `damaged`: the record is
 * not as it was written, so its key may be another one.
 */
export async function readOlderOpen(
  db: Kysely<JournalTables>,
  records: readonly RecordRef[],
): Promise<readonly OlderOpen[]> {
  const found = new Map<string, OlderRow>()
  for (let from = 0; from < records.length; from += REFS_PER_STATEMENT) {
    const refs = records.slice(from, from + REFS_PER_STATEMENT)
    const { rows } = await sql<OlderRow>`
      select f.batch, f.position, f.intact, ${splitOlder} from (
        select r.batch, r.position, ${sql.raw(intactRecord('r.'))} as intact,
          ${nearestOpen(sql`(o.batch, o.position) < (+r.batch, +r.position)`)} as older
        from journal_records r where (r.batch, r.position) in (values ${sql.join(refs.map(toRow))})
      ) f`.execute(db)
    for (const row of rows) found.set(`${row.batch}/${row.position}`, row)
  }
  return records.map(({ batch, position }) => {
    const row = found.get(`${batch}/${position}`)
    if (row?.intact !== 1) return 'damaged'
    return row.older === null ? undefined : { batch: row.older, position: row.olderPosition }
  })
}

/**
 * The open records of a batch, each with the nearest older open record of its key in another batch. It is looked for once for
 * each key, and the records of one key share one list.
 */
export async function readOlderOfBatch(
  db: Kysely<JournalTables>,
  batch: number,
): Promise<ReadonlyMap<number, readonly RecordRef[]>> {
  const { rows: firsts } = await sql<Omit<OlderRow, 'batch' | 'intact'>>`
    select f.position, ${splitOlder} from (
      select r.position, ${nearestOpen(sql`o.batch < ${toBatch(batch)}`)} as older from (
        select min(position) as position, key from journal_records
        where batch = ${toBatch(batch)} and ${OPEN} group by key) r
    ) f where f.older is not null`.execute(db)
  const olderOf = new Map(
    firsts.map((row) => [row.position, [{ batch: row.older ?? 0, position: row.olderPosition }]]),
  )
  const { rows } = await sql<{ readonly position: number; readonly first: number }>`
    select position, min(position) over (partition by key) as first from journal_records
    where batch = ${toBatch(batch)} and ${OPEN} order by position`.execute(db)
  return new Map(rows.map(({ position, first }) => [position, olderOf.get(first) ?? NONE]))
}

/** The cast is for PostgreSQL, which infers `text` for these parameters. */
const toBatch = (batch: number): RawBuilder<unknown> => sql`cast(${batch} as bigint)`
const toRow = ({ batch, position }: RecordRef): RawBuilder<unknown> =>
  sql`(cast(${batch} as bigint), cast(${position} as integer))`
