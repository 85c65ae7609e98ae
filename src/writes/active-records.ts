import type { Predecessors } from '../journal/index.ts'

interface ActiveRun {
  readonly lease: number
  readonly positions: Set<number>
  /** Called when the lease is lost. `undefined` unless the run waits for older records. */
  onLost: (() => void) | undefined
}

/** The records that the runs of this process work on. A run claims its records first, so that no record is in two runs. */
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
        /** Returns true while the record belongs to this run and its outcome is not durable. A run may work only on such records. */
        has: (position: number): boolean => own.has(position),
        /** Resolves with false when the lease of the run is lost, which ends the run's waits for older records. */
        lost: (): Promise<false> =>
          (lost ??= new Promise<false>((resolve) => {
            run.onLost = () => resolve(false)
          })),
        /** Releases records once their outcomes are durable. */
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
    /** Ends the waits of all runs under another lease than `lease`, because those leases are lost. */
    endOtherLeases: (lease: number): void => {
      for (const list of runs.values()) {
        for (const run of list) if (run.lease !== lease) run.onLost?.()
      }
    },
  }
}

/** Open records of one batch that no run works on. */
export interface Orphan {
  /** Each open record, with the older records that it waits for. */
  readonly after: Predecessors
  readonly lease: number
  /** The monotonic time in milliseconds after which none of the records was sent. */
  readonly sinceMs: number
}

export type Orphans = Map<number, Orphan>

/**
 * Hands open records of a batch over to recovery. None of the records was sent after `sinceMs`. Keeps orphans of the batch that have the
 * same lease, and replaces orphans of another lease.
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
