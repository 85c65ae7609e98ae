import type { Predecessors } from '../journal/index.ts'

/** Open records of one batch that nobody sends. */
export interface Orphan {
  /** Each of them with the older records that it waits for. */
  readonly after: Predecessors
  /** The lease under which they belong to this instance. */
  readonly lease: number
  /** By the clock, ms: nobody has sent any of them since. */
  readonly sinceMs: number
}

/** Orphans by the number of their batch. */
export type Orphans = Map<number, Orphan>

/** Leaves open records of a batch to the background, besides those that it has of this batch under the same lease. */
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
