/** The part of a run that other runs of this process see. */
interface ActiveRun {
  readonly lease: number
  /** 1 at the positions of its records: a set would cost a table for every batch. */
  readonly positions: Uint8Array
  /** Called when the lease is lost; undefined: the run does not wait for that. */
  onLost: (() => void) | undefined
}

/** The records of one run among those that this process works on. */
export interface Claim {
  /** True where no other run had any of the positions. */
  readonly all: boolean
  /** True while the record is this run's and its outcome is not durable; only such records may be worked on. */
  has(position: number): boolean
  /** Resolves false when the lease of the run is lost: its predecessors are no longer this instance's concern. */
  lost(): Promise<false>
  /** Gives records back whose outcome is durable. */
  release(positions: Iterable<number>): void
  /** Gives back the rest. */
  end(): void
}

/**
 * The records that this process works on. Every run claims its records here before it works on them and gives them back when
 * it has ended, so that a record is never in two runs: neither in two requests, nor in a request and in the background.
 */
export interface ActiveRecords {
  /** `count`: the records of the batch. */
  claim(batch: number, positions: readonly number[], count: number, lease: number): Claim
  /** True while a run has records of the batch. */
  has(batch: number): boolean
  /** Ends the waits of all runs under other leases: those leases are lost. */
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
    claim: (batch, positions, count, lease) => {
      const others = runs.get(batch) ?? new Set<ActiveRun>()
      const taken = [...others]
      const own = new Uint8Array(count)
      let left = 0
      for (const position of positions) {
        if (own[position] === 1 || taken.some((run) => run.positions[position] === 1)) continue
        own[position] = 1
        left += 1
      }
      const run: ActiveRun = { lease, positions: own, onLost: undefined }
      let lost: Promise<false> | undefined
      if (left > 0) runs.set(batch, others.add(run))
      return {
        all: left === positions.length,
        has: (position) => own[position] === 1,
        lost: () =>
          (lost ??= new Promise((resolve) => {
            run.onLost = () => resolve(false)
          })),
        release: (settled) => {
          for (const position of settled) {
            if (own[position] !== 1) continue
            own[position] = 0
            left -= 1
          }
          if (left === 0) leave(batch, run)
        },
        end: () => {
          own.fill(0)
          // A map's copied tables keep former entries from being collected: here everything that the run holds.
          run.onLost = undefined
          leave(batch, run)
        },
      }
    },
    has: (batch) => runs.has(batch),
    keepOnly: (lease) => {
      for (const list of runs.values()) {
        for (const run of list) if (run.lease !== lease) run.onLost?.()
      }
    },
  }
}
