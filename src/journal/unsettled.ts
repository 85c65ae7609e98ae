import { type Kysely, type SelectQueryBuilder, sql } from 'kysely'

import { isClosed } from './schema/record-sql.ts'
import { sideCodes } from './side.ts'
import type { JournalTables } from './schema/tables.ts'

/**
 * How many records of each partner that V3 serves are open, or are looked at again in the background; a partner without such a record is
 * left out.
 */
export async function readUnsettled(db: Kysely<JournalTables>): Promise<ReadonlyMap<string, number>> {
  const unsettled = new Map<string, number>()
  for (const { partner, records } of await unsettledRows(db).execute())
    unsettled.set(partner, (unsettled.get(partner) ?? 0) + Number(records))
  return unsettled
}

/** The counts as rows, which are to be added up by partner. */
export function unsettledRows(
  db: Kysely<JournalTables>,
): SelectQueryBuilder<JournalTables, never, { partner: string; records: number | string }> {
  // Both parts read a partial index: the work grows with the unsettled records, not with all of them.
  const open = db
    .selectFrom('journal_batches')
    .select(['partner', ({ fn }) => fn.sum<number | string>('open').as('records')])
    .where('open', '>', 0)
    .where('side', '=', sideCodes.v3)
    .groupBy('partner')
  const due = db
    .selectFrom('journal_records as record')
    .innerJoin('journal_batches as batch', 'batch.id', 'record.batch')
    .select(['batch.partner', ({ fn }) => fn.countAll<number | string>().as('records')])
    .where(sql.raw<boolean>(`record.live = 1 and ${isClosed('record.')} and record.again >= 0`))
    .groupBy('batch.partner')
  return open.unionAll(due)
}
