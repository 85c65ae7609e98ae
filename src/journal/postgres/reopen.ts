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
import type { ReopenOperation, CommittedReopen } from '../store/operations.ts'
import { seal } from '../store/seal.ts'
import type { WriteContext } from './context.ts'
import { newestOf } from './newest-of.ts'
import { writeSealed } from './sealed-rows.ts'

type BatchRow = SummedBatch & { readonly sum: number | null }

/** Opens records of a batch again. The caller holds the lock under which all begin. */
export async function reopenRecords(
  client: PoolClient,
  { instance, key }: WriteContext,
  ledger: LedgerChanges,
  { batch, positions, credentials, evenDamaged }: ReopenOperation,
): Promise<CommittedReopen> {
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
  // What it was settled with last stays, so that it can be read while it is open. For each key its newest record that is open or
  // may have been applied is looked for once.
  const { rows } = await client.query<{ position: number }>(
    `with wanted as materialized (
       select position, key from journal_records
       where batch = $1 and position = any($2::int[]) and state <> 0 and live = 1),
     standing as materialized (
       select k.key, n.batch, n.position from (select distinct key from wanted) k
       left join lateral (select * from (${newestOf('k.key', 0)} union all ${newestOf('k.key', 3)}) as both_states
         order by batch desc, position desc limit 1) n on true)
     update journal_records r set state = 0, attempts = attempts + 1,
       sum = ${changeOfRecord({ state: '0', attempts: 'r.attempts + 1' }, 'r.')}
     from wanted w join standing s on s.key = w.key
     where r.batch = $1 and r.position = w.position and r.state <> 0 and r.live = 1
       and (s.batch is null or (s.batch, s.position) <= (r.batch, r.position))
     returning r.position`,
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
    `with opened as materialized (
       select position, key from journal_records where batch = $1 and position = any($2::int[])),
     nearest as materialized (
       select f.key, n.batch, n.position from (select key, min(position) as position from opened group by key) f
       cross join lateral ${newestOf('f.key', 0, '(n.batch, n.position) < ($1, f.position)')} n)
     select r.position, n.batch, n.position as older from opened r join nearest n on n.key = r.key order by r.position`,
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
