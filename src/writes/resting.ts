import { AdapterError } from '../errors.ts'
import type { WriteContext } from './context.ts'
import { deadLetterSuperseded } from './dead-letter.ts'

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

/**
 * Gives up orphans that this instance cannot finish. It hands them over to instances that asked for them, because a client showed
 * credentials there. And it ends those that newer records of their keys have waited for as long as a lost write is read back
 * (`readBackMs`, by the partner's id), so that no orphan delays a newer mark for longer. `isBusy`: a run has the batch.
 */
export async function releaseOrphans(
  context: WriteContext,
  resting: Resting,
  isBusy: (batch: number) => boolean,
  readBackMs: (partner: string) => number,
): Promise<void> {
  await handOver(context, resting, isBusy)
  await letNewerPass(context, resting, isBusy, readBackMs)
}

async function handOver(
  { journal, orphans }: WriteContext,
  resting: Resting,
  isBusy: (batch: number) => boolean,
): Promise<void> {
  const held = [...orphans.keys()].filter(
    (batch) => resting.waiting(batch)?.missing === 'credentials' && !isBusy(batch),
  )
  if (held.length === 0) return
  for (const batch of await journal.handOver(held)) {
    orphans.delete(batch)
    resting.delete(batch)
  }
}

async function letNewerPass(
  context: WriteContext,
  resting: Resting,
  isBusy: (batch: number) => boolean,
  readBackMs: (partner: string) => number,
): Promise<void> {
  const { journal, orphans, clock } = context
  const partners = new Map<number, string>()
  for (const [batch, { sinceMs }] of orphans) {
    const waiting = resting.waiting(batch)
    if (waiting === undefined || isBusy(batch)) continue
    if (clock.nowMs() >= sinceMs + readBackMs(waiting.partner)) partners.set(batch, waiting.partner)
  }
  if (partners.size === 0) return
  const positions = new Map<number, number[]>()
  for (const { batch, position } of await journal.blocking([...partners.keys()])) {
    const own = orphans.get(batch)?.after.has(position) === true
    if (!own) continue
    const others = positions.get(batch)
    if (others === undefined) positions.set(batch, [position])
    else others.push(position)
  }
  for (const [batch, blocking] of positions) {
    const orphan = orphans.get(batch)
    if (orphan === undefined) continue
    const whose = { batch, partner: partners.get(batch) ?? '', lease: orphan.lease }
    await deadLetterSuperseded(context, whose, blocking).catch((cause: unknown) => {
      // Another instance has it now, and does this there.
      if (cause instanceof AdapterError && cause.code === 'ADP_JOURNAL_LOST') return
      throw cause
    })
    const ended = new Set(blocking)
    const left = new Map([...orphan.after].filter(([position]) => !ended.has(position)))
    if (left.size === 0) orphans.delete(batch)
    else orphans.set(batch, { ...orphan, after: left })
  }
}
