import { randomUUID } from 'node:crypto'

import type { PoolClient } from 'pg'

import type { Later } from '../core/rows.ts'
import { type CommitCounts, parseCounts } from '../high-water/commit-counts.ts'
import { commitMarkerOf } from '../schema/commit-markers.ts'
import { literal } from './literals.ts'
import type { StatementQueue } from './statement-queue.ts'

/** The lock under which all instances begin and reopen: their order is the order of batch numbers and of commits. */
export const ORDER_LOCK = 7_238_519_461

/** What a transaction finds that counts itself. */
export interface CommitRow {
  readonly identity: string | null
  readonly commits: CommitCounts
}

/** Queues the begin of a transaction that counts itself. */
export function beginCounted(queue: StatementQueue, slot: number): Later<CommitRow | undefined> {
  queue.addText('begin')
  const rows = queue.add<{ identity: string | null; commits: string }>('countCommit', String(slot))
  return () => {
    const [row] = rows()
    return row && { identity: row.identity, commits: parseCounts(row.commits) }
  }
}

/** Queues the lock of the order and a look at the row of the instance; undefined: others took it for dead. */
export function lockOrder(
  queue: StatementQueue,
  instance: number,
): Later<{ readonly older: boolean } | undefined> {
  queue.addText(`select pg_advisory_xact_lock(${ORDER_LOCK})`)
  const rows = queue.add<{ older: boolean }>('instance', String(instance))
  return () => rows()[0]
}

/**
 * What an ordered group leaves behind in the row of its instance: it tells later whether a commit without an answer was made. The
 * number of a transaction would not do: a server that dies gives the numbers that never reached its disk to others.
 */
export interface CommitMarker {
  readonly name: string
  readonly value: string
}

/** Queues the marker of a group. */
export function addCommitMarker(queue: StatementQueue, instance: number): CommitMarker {
  const marker = { name: commitMarkerOf(instance), value: randomUUID() }
  queue.add('commitMarker', literal(marker.name), literal(marker.value))
  return marker
}

/** True where the group of a marker is durable. The order is locked, so that its transaction has ended one way or the other. */
export async function isMarked(client: PoolClient, { name, value }: CommitMarker): Promise<boolean> {
  const { rows } = await client.query('select 1 from journal_meta where name = $1 and value = $2', [
    name,
    value,
  ])
  return rows.length > 0
}

/**
 * Rows of the ledger and of the commits: one for the ordered groups of an instance and one for its settles, which run at the same
 * time, as far as there are not too many instances.
 */
export const slotOf = (instance: number, lane: 'ordered' | 'settles'): number =>
  (instance % 8) * 2 + (lane === 'ordered' ? 0 : 1)
