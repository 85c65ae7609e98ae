import type { WriteContext } from './context.ts'

/** The thing that a batch cannot be finished without: credentials of a client, or its partner in the configuration. */
export type Missing = 'credentials' | 'partner'

/** A batch that waits for the thing that is missing. */
export interface Waiting {
  readonly missing: Missing
  readonly partner: string
  readonly owner: string
  /** The hash of the credentials of the batch's request. */
  readonly sender: string | undefined
  /** Until when it waits, ms since the epoch. */
  readonly untilMs: number
}

/** Batches that recovery leaves alone for now: something is missing, or their last run has failed just now. */
export interface Resting {
  wait(batch: number, waiting: Waiting): void
  /** Lets a batch rest after a failure, so that others have their turn. */
  failed(batch: number): void
  has(batch: number): boolean
  /** The wait of the batch, while the thing is still missing; undefined: it does not wait. */
  waiting(batch: number): Waiting | undefined
  delete(batch: number): void
  /** Ends all waits: the missing part may be available. */
  endWaits(): void
}

/** How long a batch rests after a failure. */
const AFTER_FAILURE_MS = 5_000

/** Creates the register of one process. */
export function createResting({
  clock,
  accepted,
  nowMs,
}: Pick<WriteContext, 'clock' | 'accepted' | 'nowMs'>): Resting {
  const waits = new Map<number, Waiting>()
  const failures = new Map<number, number>()
  const isStillMissing = (batch: number, { missing, owner, sender, untilMs }: Waiting): boolean => {
    if (nowMs() >= untilMs) return false
    if (missing === 'partner') return true
    if (accepted.senderOf(batch) !== undefined || accepted.of(owner).length > 0) return false
    return sender === undefined || accepted.withHash(sender) === undefined
  }
  const waiting = (batch: number): Waiting | undefined => {
    const wait = waits.get(batch)
    return wait !== undefined && isStillMissing(batch, wait) ? wait : undefined
  }
  return {
    wait: (batch, wait) => {
      failures.delete(batch)
      waits.set(batch, wait)
    },
    failed: (batch) => {
      waits.delete(batch)
      failures.set(batch, clock.nowMs() + AFTER_FAILURE_MS)
    },
    has: (batch) => waiting(batch) !== undefined || clock.nowMs() < (failures.get(batch) ?? -Infinity),
    waiting,
    delete: (batch) => {
      waits.delete(batch)
      failures.delete(batch)
    },
    endWaits: () => waits.clear(),
  }
}
