import type { Predecessors } from '../journal/index.ts'

interface ActiveRun {
  readonly lease: number
  readonly positions: Set<number>
  /** Called when the lease is lost. `undefined` unless the run waits for older records. */
  onLost: (() => void) | undefined
}

/** The records that runs of this process are working on. A run claims its records first, so that no two runs post the same record. */
export type ActiveRecords = ReturnType<typeof createActiveRecords>
export type Claim = ReturnType<ActiveRecords['claim']>

export function createActiveRecords() {
  const runs = new Map<number, Set<ActiveRun>>()
  return {
    claim: (batch: number, positions: readonly number[], lease: number) => {
      const others = runs.get(batch) ?? new Set<ActiveRun>()
      const isFree = (position: number): boolean => ![...others].some((run) => run.positions.has(position))
      const own = new Set(others.size === 0 ? positions : positions.filter(isFree))
      const run: ActiveRun = { lease, positions: own, onLost: undefined }
      const removeIfDone = (): void => {
        if (own.size > 0) return
        others.delete(run)
        if (others.size === 0 && runs.get(batch) === others) runs.delete(batch)
      }
      if (own.size > 0) runs.set(batch, others.add(run))
      let lost: Promise<false> | undefined
      return {
        /** Returns true if this run claimed the record and has not released it. A run may work only on records for which this is true. */
        has: (position: number): boolean => own.has(position),
        /** Resolves with false when the lease of the run is lost, so that the run stops waiting for older records. */
        lost: (): Promise<false> =>
          (lost ??= new Promise<false>((resolve) => {
            run.onLost = () => resolve(false)
          })),
        /** Releases records. Must not be called before their outcomes are durable. */
        release: (settled: Iterable<number>): void => {
          for (const position of settled) own.delete(position)
          removeIfDone()
        },
        releaseAll: (): void => {
          own.clear()
          run.onLost = undefined
          removeIfDone()
        },
      }
    },
    has: (batch: number): boolean => runs.has(batch),
    /** Ends the waits of all runs whose lease is not the current `lease`, because every earlier lease is lost. */
    endOtherLeases: (lease: number): void => {
      for (const list of runs.values()) {
        for (const run of list) if (run.lease !== lease) run.onLost?.()
      }
    },
  }
}

/** Open records of one batch that no run works on. */
export interface Orphan {
  /** Maps the position of each open record to the older records that it waits for. */
  readonly after: Predecessors
  readonly lease: number
  /** The monotonic time in milliseconds after which none of the records was sent. */
  readonly sinceMs: number
}

export type Orphans = Map<number, Orphan>

/**
 * Adds the open records `left` of a batch to the orphans, which recovery finishes. None of these records was sent after `sinceMs`. Keeps
 * the batch's orphans that have the same lease, and replaces its orphans that have another lease.
 */
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
