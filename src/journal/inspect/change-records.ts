import { type Kysely, sql, type SqlBool } from 'kysely'

import type { DueRecords } from '../journal.ts'
import { isClosed } from '../schema/record-sql.ts'
import { changeOfRecord } from '../schema/row-sums.ts'
import type { JournalTables } from '../schema/tables.ts'

/**
 * Makes records due now that wait for a later time, of one batch or of all; a running server picks them up within
 * seconds. Gives what is due now.
 */
export async function makeDue(
  db: Kysely<JournalTables>,
  nowMs: number,
  batch: number | undefined,
): Promise<readonly DueRecords[]> {
  const soon = Math.floor(nowMs)
  const rows = await db
    .updateTable('journal_records')
    .set((eb) => ({
      again: eb.case().when('again', '>', soon).then(soon).else(eb.ref('again')).end(),
      sum: sql.raw(changeOfRecord({ again: `case when again > ${soon} then ${soon} else again end` })),
    }))
    .where('live', '=', 1)
    .where(sql.raw<SqlBool>(isClosed()))
    .where('again', '>=', sql.lit(0))
    .$if(batch !== undefined, (query) => query.where('batch', '=', batch ?? 0))
    .returning(['batch', 'position'])
    .execute()
  const byBatch = new Map<number, number[]>()
  for (const row of rows) byBatch.set(row.batch, [...(byBatch.get(row.batch) ?? []), row.position])
  return [...byBatch]
    .map(([number, positions]) => ({ batch: number, positions: positions.sort((one, other) => one - other) }))
    .sort((one, other) => one.batch - other.batch)
}

/** Removes handled dead letters of a batch from the list; returns their number. */
export async function dismissDeadLetters(
  db: Kysely<JournalTables>,
  batch: number,
  positions: readonly number[] | undefined,
): Promise<number> {
  const { numUpdatedRows } = await db
    .updateTable('journal_records')
    .set({ dead_letter: 0, sum: sql.raw(changeOfRecord({ dead_letter: '0' })) })
    .where('batch', '=', batch)
    .where('dead_letter', '=', 1)
    .$if(positions !== undefined, (query) => query.where('position', 'in', [...(positions ?? [])]))
    .executeTakeFirst()
  return Number(numUpdatedRows)
}
