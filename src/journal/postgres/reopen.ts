import type { PoolClient } from 'pg'

import {
  changeOfBatch,
  changeOfRecord,
  intactRecord,
  type SummedBatch,
  summedBatchColumns,
} from '../schema/row-sums.ts'
import { damagedRecord, expectIntactBatch } from '../store/damage.ts'
import type { LedgerChanges } from '../store/ledger-changes.ts'
import type { ReopenOperation, ReopenResult } from '../store/operations.ts'
import { seal } from '../store/seal.ts'
import type { WriteContext } from './context.ts'
import { writeSealed } from './sealed-rows.ts'

type BatchRow = SummedBatch & { readonly sum: number | null }

/** Opens records of a batch again. The caller holds the lock under which all begin. */
export async function reopenRecords(
  client: PoolClient,
  { instance, key }: WriteContext,
  ledger: LedgerChanges,
  { batch, positions, credentials, evenDamaged }: ReopenOperation,
): Promise<ReopenResult> {
  const row = await lockBatch(client, batch)
  if (row === undefined || (row.open > 0 && row.owner !== instance))
    return { lease: instance, opened: [], after: [] }
  const states = await client.query<{ position: number; state: number; intact: number }>(
    `select position, state, ${intactRecord()} as intact from journal_records where batch = $1
     order by position for no key update`,
    [batch],
  )
  if (!evenDamaged) {
    expectIntactBatch(batch, row)
    if (states.rows.some(({ intact }) => intact !== 1)) throw damagedRecord(batch)
  }
  // What it was settled with last stays, so that it can be read while it is open.
  const { rows } = await client.query<{ position: number }>(
    `update journal_records r set state = 0, attempts = attempts + 1,
       sum = ${changeOfRecord({ state: '0', attempts: 'r.attempts + 1' }, 'r.')}
     where batch = $1 and position = any($2::int[]) and state <> 0 and live = 1 and not exists (
       select 1 from journal_records n where n.key = r.key and n.live = 1 and n.state in (0, 3)
         and (n.batch, n.position) > (r.batch, r.position))
     returning position`,
    [batch, positions],
  )
  const opened = rows.map(({ position }) => position).sort((one, other) => one - other)
  if (opened.length === 0) return { lease: instance, opened, after: [] }
  const stateOf = new Map(states.rows.map(({ position, state }) => [position, state]))
  for (const position of opened) ledger.move(row.partner, stateOf.get(position), 0)
  await client.query(
    `update journal_batches set owner = $2, open = open + $3,
       sum = ${changeOfBatch({ owner: '$2::bigint', open: 'open + $3' })} where id = $1`,
    [batch, instance, opened.length],
  )
  if (key !== undefined && credentials !== undefined) {
    await writeSealed(client, 'credentials', [
      { batch, ...seal(Buffer.from(credentials), key, 'credentials', { batch, owner: row.owner_id }) },
    ])
  }
  const older = await client.query<{ position: number; batch: number; older: number }>(
    `select r.position, o.batch, o.position as older from journal_records r
     join journal_records o on o.key = r.key and o.live = 1 and o.state = 0
       and (o.batch, o.position) < (r.batch, r.position)
       and not (o.batch = r.batch and o.position = any($2::int[]))
     where r.batch = $1 and r.position = any($2::int[]) order by r.position, o.batch, o.position`,
    [batch, opened],
  )
  return { lease: instance, opened, after: older.rows.flatMap((one) => [one.position, one.batch, one.older]) }
}

/** Removes a batch that was begun too late. */
export async function withdrawBatch(
  client: PoolClient,
  { instance }: WriteContext,
  ledger: LedgerChanges,
  batch: number,
): Promise<'done'> {
  const row = await lockBatch(client, batch)
  // Taken over meanwhile: it is finished there.
  if (row === undefined || row.owner !== instance) return 'done'
  const { rows } = await client.query<{ state: number }>(
    'delete from journal_records where batch = $1 returning state',
    [batch],
  )
  for (const { state } of rows) ledger.remove(row.partner, state, 1)
  for (const table of ['answers', 'payloads', 'credentials']) {
    await client.query(`delete from journal_${table} where batch = $1`, [batch])
  }
  await client.query('delete from journal_batches where id = $1', [batch])
  return 'done'
}

async function lockBatch(client: PoolClient, batch: number): Promise<BatchRow | undefined> {
  const { rows } = await client.query<BatchRow>(
    `select ${summedBatchColumns.join()}, sum from journal_batches where id = $1 for no key update`,
    [batch],
  )
  return rows[0]
}
