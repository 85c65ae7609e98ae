import { type Kysely, sql } from 'kysely'

import { writeMeta } from '../schema/migrate.ts'
import { changeOfBatch } from '../schema/row-sums.ts'
import type { JournalTables } from '../schema/tables.ts'
import type { Store } from '../store/store.ts'

/** The name of a row in `journal_meta` with the instance that asks for a batch. */
const nameOf = (batch: number): string => `asked: ${batch}`
const requests = 'asked: %'
const batchOf = (name: string): number => Number(name.slice(nameOf(0).length - 1))

/** Asks the instance that has a batch for it. */
export async function askForBatch(db: Kysely<JournalTables>, batch: number, instance: number): Promise<void> {
  await writeMeta(db, nameOf(batch), String(instance))
}

/** Makes live instances that asked for one of these batches of `instance` its owners; gives the batches that went to others. */
export async function handOverBatches(
  { db, exclusively }: Pick<Store, 'db' | 'exclusively'>,
  batches: readonly number[],
  instance: number,
): Promise<readonly number[]> {
  const rows = await db.selectFrom('journal_meta').selectAll().where('name', 'like', requests).execute()
  const held = new Set(batches)
  const asked = rows
    .map(({ name, value }) => ({ name, batch: batchOf(name), by: Number(value) }))
    .filter(({ batch, by }) => held.has(batch) && Number.isSafeInteger(by))
  if (asked.length === 0) return []
  return exclusively(async (transaction) => {
    const given: number[] = []
    for (const { name, batch, by } of asked) {
      await transaction.deleteFrom('journal_meta').where('name', '=', name).execute()
      if (by === instance) continue
      const changed = await transaction
        .updateTable('journal_batches')
        .set({ owner: by, sum: sql.raw(changeOfBatch({ owner: String(by) })) })
        .where('id', '=', batch)
        .where('owner', '=', instance)
        .where((eb) => eb.exists(eb.selectFrom('journal_instances').select('id').where('id', '=', by)))
        .returning('id')
        .execute()
      given.push(...changed.map(({ id }) => id))
    }
    return given
  })
}

/** Deletes requests that were never answered: their batch was finished meanwhile. */
export async function dropRequests(db: Kysely<JournalTables>): Promise<void> {
  await db.deleteFrom('journal_meta').where('name', 'like', requests).execute()
}
