/** A run of this process, as far as others must know of it. */
interface ActiveRun {
  readonly lease: number
  readonly positions: Set<number>
  readonly end: () => void
}

/** The records of one run among those that this process works on. */
export interface Claim {
  /** Those that no other run has; only these may be worked on. */
  readonly positions: ReadonlySet<number>
  /** Resolves when the lease of the run is lost: what it waits for is others' business then. */
  readonly lost: Promise<void>
  /** Gives records back whose outcome is durable. */
  release(positions: Iterable<number>): void
  /** Gives back all that are left. */
  end(): void
}

/**
 * The records that this process works on. Every run claims its records here before it works on them and gives them back when
 * it has ended, so that a record is never in two runs: neither in two requests, nor in a request and in the background.
 */
export interface ActiveRecords {
  claim(batch: number, positions: Iterable<number>, lease: number): Claim
  /** True while a run has records of the batch. */
  has(batch: number): boolean
  /** Tells the runs under other leases that theirs is lost. */
  keepOnly(lease: number): void
}

/** Creates the register of one process. */
export function createActiveRecords(): ActiveRecords {
  const runs = new Map<number, Set<ActiveRun>>()
  const leave = (batch: number, run: ActiveRun): void => {
    const others = runs.get(batch)
    others?.delete(run)
    if (others?.size === 0) runs.delete(batch)
  }
  return {
    claim: (batch, positions, lease) => {
      const others = runs.get(batch) ?? new Set<ActiveRun>()
      const taken = [...others]
      const own = new Set<number>()
      for (const position of positions) {
        if (!taken.some((run) => run.positions.has(position))) own.add(position)
      }
      const { promise: lost, resolve: end } = Promise.withResolvers<undefined>()
      const run: ActiveRun = { lease, positions: own, end: () => end(undefined) }
      if (own.size > 0) runs.set(batch, others.add(run))
      return {
        positions: new Set(own),
        lost,
        release: (settled) => {
          for (const position of settled) own.delete(position)
          if (own.size === 0) leave(batch, run)
        },
        end: () => {
          own.clear()
          leave(batch, run)
        },
      }
    },
    has: (batch) => runs.has(batch),
    keepOnly: (lease) => {
      for (const list of runs.values()) {
        for (const run of list) if (run.lease !== lease) run.end()
      }
    },
  }
}
