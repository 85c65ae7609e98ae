import type { Predecessors } from '../journal/index.ts'

/** Open records of one batch that no run has. */
export interface Orphan {
  /** Each of them with the older records that it waits for. */
  readonly after: Predecessors
  /** The lease under which they belong to this instance. */
  readonly lease: number
  /** By the clock, ms: none of them was sent after this. */
  readonly sinceMs: number
}

/** Orphans by the number of their batch. */
export type Orphans = Map<number, Orphan>

/** Leaves open records of a batch to recovery, besides those of the batch that it has under the same lease. */
export function markOrphaned(
  orphans: Orphans,
  batch: number,
  left: Predecessors,
  lease: number,
  nowMs: number,
): void {
  const before = orphans.get(batch)
  const after = new Map([...(before?.lease === lease ? before.after : []), ...left])
  orphans.set(batch, { after, lease, sinceMs: nowMs })
}
