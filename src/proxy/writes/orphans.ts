import type { Reopened } from '../../journal/index.ts'

/** Open records of one batch that nobody sends. */
export interface Orphan {
  /** Each of them with the older records that it waits for. */
  readonly after: Reopened
  /** By the clock, ms: nobody has sent any of them since. */
  readonly sinceMs: number
}

/** Orphans by the number of their batch. */
export type Orphans = Map<number, Orphan>

/** Leaves open records of a batch to the background, besides those that it has of this batch. */
export function leaveBehind(orphans: Orphans, batch: number, left: Reopened, nowMs: number): void {
  const after = new Map([...(orphans.get(batch)?.after ?? []), ...left])
  orphans.set(batch, { after, sinceMs: nowMs })
}
