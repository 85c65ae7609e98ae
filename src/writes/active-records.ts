import type { Predecessors } from '../journal/index.ts'

interface ActiveRun {
  readonly lease: number
  readonly positions: Set<number>
  /** Called when the lease is lost; undefined: the run does not wait for that. */
  onLost: (() => void) | undefined
}

/**
 * The records that this process works on. Every run claims its records here before it works on them and gives them back when
 * it has ended, so that a record is never in two runs: neither in two requests, nor in a request and in the background.
 */
export type ActiveRecords = ReturnType<typeof createActiveRecords>
/** The records of one run among those that this process works on. */
export type Claim = ReturnType<ActiveRecords['claim']>

/** Creates the register of one process. */
export function createActiveRecords() {
  const runs = new Map<number, Set<ActiveRun>>()
  return {
    /** Claims those of the records that no other run has. */
    claim: (batch: number, positions: readonly number[], lease: number) => {
      const others = runs.get(batch) ?? new Set<ActiveRun>()
      const isFree = (position: number): boolean => ![...others].some((run) => run.positions.has(position))
      const own = new Set(others.size === 0 ? positions : positions.filter(isFree))
      const run: ActiveRun = { lease, positions: own, onLost: undefined }
      const leaveIfDone = (): void => {
        if (own.size > 0) return
        others.delete(run)
        if (others.size === 0 && runs.get(batch) === others) runs.delete(batch)
      }
      if (own.size > 0) runs.set(batch, others.add(run))
      let lost: Promise<false> | undefined
      return {
        /** True while the record is this run's and its outcome is not durable; only such records may be worked on. */
        has: (position: number): boolean => own.has(position),
        /** Resolves false when the lease of the run is lost: its predecessors are no longer this instance's concern. */
        lost: (): Promise<false> =>
          (lost ??= new Promise<false>((resolve) => {
            run.onLost = () => resolve(false)
          })),
        /** Gives records back whose outcome is durable. */
        release: (settled: Iterable<number>): void => {
          for (const position of settled) own.delete(position)
          leaveIfDone()
        },
        /** Gives back the rest. */
        end: (): void => {
          own.clear()
          run.onLost = undefined
          leaveIfDone()
        },
      }
    },
    /** True while a run has records of the batch. */
    has: (batch: number): boolean => runs.has(batch),
    /** Ends the waits of all runs under other leases: those leases are lost. */
    keepOnly: (lease: number): void => {
      for (const list of runs.values()) {
        for (const run of list) if (run.lease !== lease) run.onLost?.()
      }
    },
  }
}

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

/** Leaves open records of a batch, none of which was sent after `sinceMs`, to recovery, besides those of the batch that it has under the same lease. */
export function markOrphaned(
  orphans: Orphans,
  batch: number,
  left: Predecessors,
  lease: number,
  sinceMs: number,
): void {
  const before = orphans.get(batch)
  const own = before?.lease === lease ? before : undefined
  const after = new Map([...(own?.after ?? []), ...left])
  orphans.set(batch, { after, lease, sinceMs: Math.max(sinceMs, own?.sinceMs ?? sinceMs) })
}
