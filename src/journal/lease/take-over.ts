import type { Kysely } from 'kysely'

import type { RecordRef, TakenOver } from '../journal.ts'
import type { JournalTables } from '../schema/tables.ts'
import type { Store } from '../store/store.ts'
import { isGone, type ProcessIdentity } from './process-identity.ts'

/**
 * Makes `instance` the owner of the batches with open records whose instance is gone: its lease has ended, its process is not
 * there any longer, or it has given up its place. Resolves with them, oldest first; `after` has every open record.
 */
export function takeOver(
  store: Store,
  instance: number,
  own: ProcessIdentity,
): Promise<readonly TakenOver[]> {
  return store.exclusively(async (db) => {
    const others = await db
      .selectFrom('journal_instances')
      .select(['id', 'host', 'boot', 'pid', 'started'])
      .select((eb) => eb.case().when('lease_until', '<', store.nowMs()).then(1).else(0).end().as('expired'))
      .where('id', '<>', instance)
      .execute()
    const gone = others.filter((other) => other.expired === 1 || isGone(other, own)).map(({ id }) => id)
    if (gone.length > 0) await db.deleteFrom('journal_instances').where('id', 'in', gone).execute()
    const taken = await db
      .updateTable('journal_batches')
      .set({ owner: instance })
      .where('open', '>', 0)
      .where('owner', '<>', instance)
      .where('owner', 'not in', (eb) => eb.selectFrom('journal_instances').select('id'))
      .returning('id')
      .execute()
    const batches: TakenOver[] = []
    for (const batch of taken.map(({ id }) => id).sort((one, other) => one - other)) {
      batches.push({ batch, after: await readOlderOpen(db, batch) })
    }
    return batches
  })
}

/** The open records of a batch, each with the older open records of its key. */
async function readOlderOpen(
  db: Kysely<JournalTables>,
  batch: number,
): Promise<ReadonlyMap<number, readonly RecordRef[]>> {
  const rows = await db
    .selectFrom('journal_records as r')
    .leftJoin('journal_records as o', (join) =>
      join
        .onRef('o.key', '=', 'r.key')
        .on('o.live', '=', 1)
        .on('o.state', '=', 0)
        .onRef('o.batch', '<', 'r.batch'),
    )
    .select(['r.position', 'o.batch as olderBatch', 'o.position as olderPosition'])
    .where('r.batch', '=', batch)
    .where('r.state', '=', 0)
    .orderBy('r.position')
    .orderBy('o.batch')
    .orderBy('o.position')
    .execute()
  const after = new Map<number, RecordRef[]>()
  for (const { position, olderBatch, olderPosition } of rows) {
    const refs = after.get(position) ?? []
    if (olderBatch !== null && olderPosition !== null)
      refs.push({ batch: olderBatch, position: olderPosition })
    after.set(position, refs)
  }
  return after
}
