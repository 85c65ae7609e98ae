import { type Kysely, type RawBuilder, sql } from 'kysely'

import type { Balance, DueRecords, OlderUnsettled, RecordRef } from './journal.ts'
import { selectStates, stateCodes, stateColumns } from './lifecycle.ts'
import { fromPlace, isOnV2, isOpen, newestOf } from './sql.ts'
import type { JournalTables } from './schema.ts'

/** Maximum number of references in one statement, because databases limit the number of parameters. */
const REFS_PER_STATEMENT = 1_000
const NONE: readonly RecordRef[] = []

/** Returns a reference as a row in SQL. The casts are needed because PostgreSQL treats an untyped parameter as text. */
const toRow = ({ batch, position }: RecordRef): RawBuilder<unknown> =>
  sql`(cast(${batch} as bigint), cast(${position} as integer))`

async function readInParts<Item, Row>(
  items: readonly Item[],
  read: (part: RawBuilder<unknown>) => RawBuilder<Row>,
  toValue: (item: Item) => RawBuilder<unknown>,
  db: Kysely<JournalTables>,
): Promise<readonly Row[]> {
  const found: Row[] = []
  for (let from = 0; from < items.length; from += REFS_PER_STATEMENT) {
    const part = items.slice(from, from + REFS_PER_STATEMENT)
    found.push(...(await read(sql.join(part.map(toValue))).execute(db)).rows)
  }
  return found
}

interface OlderRow extends RecordRef {
  readonly older: number | null
  readonly olderPosition: number
}

const splitOlder = sql.raw(fromPlace('f.older', 'older', '"olderPosition"'))

export async function readOlderOpen(
  db: Kysely<JournalTables>,
  records: readonly RecordRef[],
): Promise<readonly (RecordRef | undefined)[]> {
  const older = sql.raw(
    newestOf('r.key', `${isOpen('o.')} and (o.batch, o.position) < (+r.batch, +r.position)`),
  )
  const rows = await readInParts(
    records,
    (refs) => sql<OlderRow>`select f.batch, f.position, ${splitOlder} from (
      select r.batch, r.position, ${older} as older
      from journal_records r where (r.batch, r.position) in (values ${refs})) f
      where f.older is not null`,
    toRow,
    db,
  )
  const found = new Map(rows.map((row) => [`${row.batch}/${row.position}`, row]))
  return records.map(({ batch, position }) => {
    const row = found.get(`${batch}/${position}`)
    return row && { batch: row.older ?? 0, position: row.olderPosition }
  })
}

/** Returns the nearest older open record in another batch for each open record of a batch. The records of one key share one list. */
export async function readOlderOfBatch(
  db: Kysely<JournalTables>,
  batch: number,
): Promise<ReadonlyMap<number, readonly RecordRef[]>> {
  const older = sql.raw(newestOf('r.key', `${isOpen('o.')} and o.batch < ${batch}`))
  const { rows: firsts } = await sql<Omit<OlderRow, 'batch'>>`select f.position, ${splitOlder} from (
    select r.position, ${older} as older from (
      select min(position) as position, key from journal_records
      where batch = ${batch} and ${sql.raw(isOpen())} group by key) r) f
    where f.older is not null`.execute(db)
  const olderOf = new Map(
    firsts.map((row) => [row.position, [{ batch: row.older ?? 0, position: row.olderPosition }]]),
  )
  const { rows } = await sql<{ readonly position: number; readonly first: number }>`
    select position, min(position) over (partition by key) as first from journal_records
    where batch = ${batch} and ${sql.raw(isOpen())} order by position`.execute(db)
  return new Map(rows.map(({ position, first }) => [position, olderOf.get(first) ?? NONE]))
}

export async function readStillOpen(
  db: Kysely<JournalTables>,
  records: readonly RecordRef[],
): Promise<readonly RecordRef[]> {
  const rows = await readInParts(
    records,
    (refs) => sql<RecordRef>`select batch, position from journal_records
      where ${sql.raw(isOpen())} and (batch, position) in (values ${refs})`,
    toRow,
    db,
  )
  const open = new Set(rows.map(({ batch, position }) => `${batch}/${position}`))
  return records.filter(({ batch, position }) => open.has(`${batch}/${position}`))
}

export function readBlocking(
  db: Kysely<JournalTables>,
  batches: readonly number[],
): Promise<readonly RecordRef[]> {
  // Uses a subquery, because PostgreSQL may implement "exists" by a join that reads all active records.
  return readInParts(
    batches,
    (numbers) => sql<RecordRef>`select o.batch, o.position from journal_records o
      where o.batch in (${numbers}) and ${sql.raw(isOpen('o.'))} and (
        select n.batch from journal_records n
        where n.key = o.key and n.active = 1 and ${sql.raw(isOpen('n.'))} and n.batch > o.batch
        order by n.batch limit 1) is not null
      order by o.batch, o.position`,
    (batch) => sql`${batch}`,
    db,
  )
}

export async function readOlderUnsettled(
  db: Kysely<JournalTables>,
  records: readonly RecordRef[],
): Promise<readonly OlderUnsettled[]> {
  const rows = await readInParts(
    records,
    (refs) => sql<RecordRef & { older: number; olderPosition: number; state: number }>`
      select r.batch, r.position, o.batch as older, o.position as "olderPosition", o.state
      from journal_records r join journal_records o on o.key = r.key and o.active = 1
        and (${sql.raw(isOpen('o.'))} or (o.state = ${sql.lit(stateCodes.unknown)} and o.retry >= 0))
        and (o.batch, o.position) < (+r.batch, +r.position) and not ${sql.raw(isOnV2('o.batch'))}
      where (r.batch, r.position) in (values ${refs})
      order by o.batch, o.position`,
    toRow,
    db,
  )
  return rows.map(({ batch, position, older, olderPosition, state }) => ({
    own: { batch, position },
    older: { batch: older, position: olderPosition },
    isOpen: state === stateCodes.open,
  }))
}

/** Returns a condition in SQL that is true for a record with a due time. `alias` includes its trailing dot. */
export const isDue = (alias = ''): RawBuilder<boolean> =>
  sql.raw(`${alias}active = 1 and ${alias}state <> ${stateCodes.open} and ${alias}retry >= 0`)

/**
 * A limit above the longest pause before a retry (10 minutes). A record that is due later than this was deferred by a clock that has been
 * set back since.
 */
const LONGEST_WAIT_MS = 660_000

export async function readDue(
  db: Kysely<JournalTables>,
  nowMs: number,
  limit: number,
): Promise<readonly DueRecords[]> {
  const now = Math.floor(nowMs)
  // Gives each of the two queries its own limit, so that neither reads more than `limit` due times from the index.
  const first = (times: RawBuilder<unknown>): RawBuilder<unknown> =>
    sql`select * from (select batch, position from journal_records where ${isDue()} and ${times} order by retry limit ${limit}) t`
  const { rows } =
    await sql<RecordRef>`${first(sql`retry <= ${now}`)} union all ${first(sql`retry > ${now + LONGEST_WAIT_MS}`)}
    limit ${limit}`.execute(db)
  return toDueRecords(rows)
}

export function toDueRecords(rows: readonly RecordRef[]): readonly DueRecords[] {
  const byBatch = Map.groupBy(rows, ({ batch }) => batch)
  return [...byBatch].map(([batch, own]) => ({ batch, positions: own.map(({ position }) => position) }))
}

export async function readBalances(db: Kysely<JournalTables>): Promise<readonly Balance[]> {
  const sum = Object.values(stateColumns).join(' + ')
  const { rows } = await sql<Balance>`select partner, ${sql.raw(`${selectStates()}, ${sum} as received`)}
    from journal_ledger order by partner`.execute(db)
  return rows
}

export async function readDeadLetters(db: Kysely<JournalTables>): Promise<ReadonlyMap<string, number>> {
  const { rows } = await sql<{ partner: string; records: number | string }>`
    select b.partner, count(*) as records from journal_records r
    join journal_batches b on b.id = r.batch where r.dead_letter = 1 group by b.partner`.execute(db)
  return new Map(rows.map(({ partner, records }) => [partner, Number(records)]))
}

export async function readUnsettled(db: Kysely<JournalTables>): Promise<ReadonlyMap<string, number>> {
  const unsettled = new Map<string, number>()
  const { rows } = await sql<{ partner: string; records: number | string }>`
    select partner, sum(open) as records from journal_batches where open > 0 and on_v2 = 0 group by partner
    union all
    select batch.partner, count(*) as records
    from journal_records record join journal_batches batch on batch.id = record.batch
    where ${isDue('record.')} group by batch.partner`.execute(db)
  for (const { partner, records } of rows)
    unsettled.set(partner, (unsettled.get(partner) ?? 0) + Number(records))
  return unsettled
}

/**
 * Returns SQL for a table of the partners without an open or due record. The totals decide for most partners. One search of all due records
 * decides for the others, because even a search for a single partner could read all due records.
 */
export const settledAmong = (partners: readonly string[]): RawBuilder<unknown> => {
  const asked = sql.join(partners.map((partner) => sql`(cast(${partner} as text))`))
  return sql`(with asked (partner) as (values ${asked}) select partner from asked a
    where not exists (select 1 from journal_ledger l
        where l.partner = a.partner and (l.open <> 0 or l.unknown <> 0 or l.parked <> 0))
      or (partner not in (select partner from journal_batches where open > 0 and on_v2 = 0)
        and partner not in (select batch.partner from journal_records record
          join journal_batches batch on batch.id = record.batch where ${isDue('record.')})))`
}
