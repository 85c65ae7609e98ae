import { AdapterError } from '../errors.ts'
import { markOrphaned } from './active-records.ts'
import type { WriteContext } from './context.ts'
import { type AuthoriseStored, createFinisher, type Work } from './finish-batch.ts'
import { createResting, releaseOrphans } from './resting.ts'

/** Finishes writes that no client waits for. */
export interface Recovery {
  /** Takes over the orphans of instances that are gone, now and every second, and retries due records. */
  start(): void
  /** Retries batches that wait for credentials or for their partner: another configuration may have them. */
  retryWaiting(): void
  /** Starts no more batches, and resolves when those under way have ended. */
  stop(): Promise<void>
}

/** How often the journal is searched. */
const EVERY_MS = 1_000
const BATCHES_AT_A_TIME = 16
const DUE_AT_A_TIME = 500

/**
 * Creates the scheduler of recovery (product contract 3): it chooses the batches that are to be finished, orphaned ones first,
 * and keeps sixteen of them under way; `createFinisher` finishes one. `authorise` names what is missing for a batch that cannot
 * go to V3; `readBackMs` is the time for which a lost write of a partner is read back.
 */
export function createRecovery(
  context: WriteContext,
  authorise: AuthoriseStored,
  readBackMs: (partner: string) => number,
): Recovery {
  const { journal, clock, orphans, active, events } = context
  const resting = createResting(context)
  const finishBatch = createFinisher(context, authorise, resting, readBackMs)
  const running = new Map<number, Promise<void>>()
  /** Due records that rested when they were last read: they must not hide the others. */
  let dueResting = 0
  /** Batches to finish, the first at the end. */
  let queue: Work[] = []
  let stopping = false
  let ticking: Promise<void> | undefined
  let timer: (() => void) | undefined

  const failed = (cause: unknown): void =>
    events.recoveryFailed({ code: cause instanceof AdapterError ? cause.code : 'ADP_INTERNAL' })
  const isBusy = (batch: number): boolean => running.has(batch) || active.has(batch)

  const run = (next: Work): void => {
    const { batch } = next
    const job = finishBatch(next)
      .then(
        (isDone) => {
          if (isDone) resting.delete(batch)
        },
        (cause: unknown) => {
          failed(cause)
          resting.failed(batch)
        },
      )
      .finally(() => {
        running.delete(batch)
        fill()
      })
    running.set(batch, job)
  }
  const fill = (): void => {
    while (!stopping && running.size < BATCHES_AT_A_TIME) {
      const next = queue.pop()
      if (next === undefined) return
      if (!running.has(next.batch)) run(next)
    }
  }
  const takeOver = async (): Promise<void> => {
    const taken = await journal.takeOver()
    const abandoned = await journal.findAbandoned((batch) => isBusy(batch) || orphans.has(batch))
    const now = journal.lease()
    if (now !== undefined) {
      active.keepOnly(now)
      // Batches of a lost lease are taken over anew, by this instance or another.
      for (const [batch, { lease }] of orphans) if (lease !== now) orphans.delete(batch)
    }
    for (const { batch, after, lease } of [...taken, ...abandoned])
      markOrphaned(orphans, batch, after, lease, clock.nowMs())
  }
  const tick = async (): Promise<void> => {
    await takeOver()
    await releaseOrphans(context, resting, isBusy, readBackMs)
    const due = await journal.due(context.nowMs(), DUE_AT_A_TIME + dueResting)
    dueResting = due.reduce(
      (sum, { batch, positions }) => sum + (resting.has(batch) ? positions.length : 0),
      0,
    )
    const left = [...orphans.keys()]
      .filter((batch) => !active.has(batch))
      .map((batch): Work => ({ batch, positions: undefined }))
    queue = [...left, ...due].filter(({ batch }) => !running.has(batch) && !resting.has(batch)).reverse()
    fill()
  }
  const start = (): void => {
    timer = undefined
    ticking = tick()
      .catch(failed)
      .finally(() => {
        ticking = undefined
        if (!stopping) timer = clock.after(EVERY_MS, start)
      })
  }
  return {
    start,
    retryWaiting: () => resting.endWaits(),
    stop: async () => {
      stopping = true
      timer?.()
      await ticking
      await Promise.all(running.values())
    },
  }
}
