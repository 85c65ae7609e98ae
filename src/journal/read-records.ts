import { type Kysely, type RawBuilder, sql, type SqlBool } from 'kysely'

import type { DueRecords, OlderUnsettled, RecordRef } from './journal.ts'
import { stateCodes } from './lifecycle.ts'
import { isClosed, isIn, isOpen } from './schema/record-sql.ts'
import { intactRecord } from './schema/row-sums.ts'
import { isOnV2 } from './side.ts'
import type { JournalTables } from './schema/tables.ts'

/** So many references go into one statement: databases bound their parameters. */
const REFS_PER_STATEMENT = 1_000

/** Those of the records that are open, in the given order; what is damaged may be open still. */
export async function readStillOpen(
  db: Kysely<JournalTables>,
  records: readonly RecordRef[],
): Promise<readonly RecordRef[]> {
  const open = new Set<string>()
  for (let from = 0; from < records.length; from += REFS_PER_STATEMENT) {
    const refs = records.slice(from, from + REFS_PER_STATEMENT)
    const rows = await db
      .selectFrom('journal_records')
      .select(['batch', 'position'])
      .where(sql.raw<SqlBool>(`(${isOpen()} or ${intactRecord()} = 0)`))
      .where(sql<SqlBool>`(batch, position) in (values ${sql.join(refs.map(toRow))})`)
      .execute()
    for (const { batch, position } of rows) open.add(`${batch}/${position}`)
  }
  return records.filter(({ batch, position }) => open.has(`${batch}/${position}`))
}

/** The open records of these batches that an open record of the same key in a newer batch waits for. */
export async function readBlocking(
  db: Kysely<JournalTables>,
  batches: readonly number[],
): Promise<readonly RecordRef[]> {
  const blocking: RecordRef[] = []
  for (let from = 0; from < batches.length; from += REFS_PER_STATEMENT) {
    const rows = await db
      .selectFrom('journal_records as o')
      .select(['o.batch', 'o.position'])
      .where('o.batch', 'in', batches.slice(from, from + REFS_PER_STATEMENT))
      .where(sql.raw<SqlBool>(isOpen('o.')))
      .where((eb) =>
        // Not "exists": PostgreSQL may join for that, which reads all that is live.
        eb(
          eb
            .selectFrom('journal_records as n')
            .select('n.batch')
            .whereRef('n.key', '=', 'o.key')
            .where('n.live', '=', sql.lit(1))
            .where(sql.raw<SqlBool>(isOpen('n.')))
            .whereRef('n.batch', '>', 'o.batch')
            .orderBy('n.batch')
            .limit(sql.lit(1)),
          'is not',
          null,
        ),
      )
      .orderBy('o.batch')
      .orderBy('o.position')
      .execute()
    blocking.push(...rows)
  }
  return blocking
}

/** For each of the records the older ones of its key that V3 serves and that are open, or unknown and due at some time. */
export async function readOlderUnsettled(
  db: Kysely<JournalTables>,
  records: readonly RecordRef[],
): Promise<readonly OlderUnsettled[]> {
  const found: OlderUnsettled[] = []
  for (let from = 0; from < records.length; from += REFS_PER_STATEMENT) {
    const refs = records.slice(from, from + REFS_PER_STATEMENT)
    const rows = await db
      .selectFrom('journal_records as r')
      .innerJoin('journal_records as o', 'o.key', 'r.key')
      .select(['r.batch', 'r.position', 'o.batch as older', 'o.position as olderPosition', 'o.state'])
      .where('o.live', '=', sql.lit(1))
      .where(sql.raw<SqlBool>(`(${isOpen('o.')} or (${isIn('unknown', 'o.')} and o.again >= 0))`))
      .where(sql.raw<SqlBool>(`not ${isOnV2('o.batch')}`))
      .where(sql<SqlBool>`(o.batch, o.position) < (+r.batch, +r.position)`)
      .where(sql<SqlBool>`(r.batch, r.position) in (values ${sql.join(refs.map(toRow))})`)
      .orderBy('o.batch')
      .orderBy('o.position')
      .execute()
    for (const { batch, position, older, olderPosition, state } of rows) {
      const isOpen = state === stateCodes.open
      found.push({ own: { batch, position }, older: { batch: older, position: olderPosition }, isOpen })
    }
  }
  return found
}

/** PostgreSQL takes parameters in VALUES for text unless they are told to be something else. */
const toRow = ({ batch, position }: RecordRef): RawBuilder<unknown> =>
  sql`(cast(${batch} as bigint), cast(${position} as integer))`

/** No record is put off for longer: what waits longer was put off by a clock that was set back since. */
const LONGEST_WAIT_MS = 660_000

/** Records whose time has come, those first that wait longest. */
export async function readDue(
  db: Kysely<JournalTables>,
  nowMs: number,
  limit: number,
): Promise<readonly DueRecords[]> {
  const rows = await db
    .selectFrom('journal_records')
    .select(['batch', 'position'])
    .where('live', '=', 1)
    .where(sql.raw<SqlBool>(isClosed()))
    .where('again', '>=', sql.lit(0))
    .where((eb) =>
      eb.or([eb('again', '<=', Math.floor(nowMs)), eb('again', '>', Math.floor(nowMs) + LONGEST_WAIT_MS)]),
    )
    .orderBy('again')
    .orderBy('batch')
    .orderBy('position')
    .limit(limit)
    .execute()
  const batches = new Map<number, number[]>()
  for (const { batch, position } of rows) {
    const positions = batches.get(batch)
    if (positions === undefined) batches.set(batch, [position])
    else positions.push(position)
  }
  return [...batches].map(([batch, positions]) => ({ batch, positions }))
}
