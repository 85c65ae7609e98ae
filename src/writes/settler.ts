import type { Settled } from '../journal/index.ts'
import type { PartReply } from '../v2/index.ts'
import type { Claim } from './active-records.ts'
import type { WriteContext } from './context.ts'

/** Called with each record whose outcome is durable, and its part of the reply. */
export type OnSettled = (position: number, reply: PartReply) => void

/** Makes the outcomes of one run durable, in groups. */
export interface Settler {
  settle(settled: Settled, reply: PartReply): void
  /** Resolves true once the outcome of this record is durable, false when it cannot be kept. Call it before `settle`. */
  durable(position: number): Promise<boolean>
  /** True once the journal could not keep an outcome; it keeps no later one of this run either. */
  hasFailed(): boolean
  /** Resolves when every settled outcome is durable and reported; rejects when one cannot be kept. */
  flushed(): Promise<void>
}

/**
 * How long an outcome may wait for others of its run, so that they share one commit. Parts wait longer for each other in the
 * reply; the last outcome of a run waits for nothing.
 */
const GATHER_MS = 10

/** Creates the settler of a run with `count` records. Calls `onSettled` after an outcome is durable, never before. */
export function createSettler(
  { journal, predecessors, clock }: Pick<WriteContext, 'journal' | 'predecessors' | 'clock'>,
  { batch, lease, count }: { readonly batch: number; readonly lease: number; readonly count: number },
  claim: Claim,
  onSettled: OnSettled,
): Settler {
  let outcomes: Settled[] = []
  let replies: PartReply[] = []
  let left = count
  let cancelTimer: (() => void) | undefined
  let flushing: Promise<void> | undefined
  let failed = false
  const successors = new Map<number, (isDurable: boolean) => void>()
  const release = (positions: Iterable<number>, isDurable: boolean): void => {
    for (const position of positions) successors.get(position)?.(isDurable)
  }
  const flush = async (): Promise<void> => {
    // The outcomes that undici reads from its sockets in one turn of the loop go together.
    await new Promise((resolve) => setImmediate(resolve))
    while (outcomes.length > 0) {
      const [group, parts] = [outcomes, replies]
      outcomes = []
      replies = []
      await journal.settle(batch, group, lease)
      const positions = group.map(({ position }) => position)
      claim.release(positions)
      parts.forEach((part, index) => {
        onSettled(group[index]?.position ?? -1, part)
      })
      predecessors.settled(batch, positions)
      release(positions, true)
    }
    flushing = undefined
  }
  const begin = (): void => {
    cancelTimer?.()
    cancelTimer = undefined
    if (flushing !== undefined || outcomes.length === 0) return
    flushing = flush()
    // `flushed` rejects with the same cause.
    flushing.catch(() => {
      failed = true
      release(successors.keys(), false)
    })
  }
  return {
    settle: (settled, reply) => {
      outcomes.push(settled)
      replies.push(reply)
      left -= 1
      if (left <= 0 || successors.has(settled.position)) begin()
      else if (flushing === undefined) cancelTimer ??= clock.after(GATHER_MS, begin)
    },
    durable: (position) =>
      new Promise((resolve) => {
        successors.set(position, resolve)
      }),
    hasFailed: () => failed,
    flushed: async () => {
      begin()
      while (flushing !== undefined) await flushing
    },
  }
}
