import { AdapterError } from '../errors.ts'
import type { RecordRef } from '../journal/index.ts'
import { markOrphaned } from './active-records.ts'
import type { WriteContext } from './context.ts'
import {
  type AuthoriseStored,
  createFinisher,
  deadLetterSuperseded,
  type ReadBackMs,
  type Waiting,
  type Work,
} from './finish-batch.ts'

const EVERY_MS = 1_000
const BATCHES_AT_A_TIME = 16
const DUE_AT_A_TIME = 500
/** Maximum share of time that searches for due records take if more than `DUE_AT_A_TIME` due records belong to resting batches. */
const DUE_SHARE = 1 / 50

/**
 * Creates the scheduler of recovery (product contract 3). The scheduler selects batches for `createFinisher`, orphans first, and runs
 * sixteen at a time.
 */
export function createRecovery(context: WriteContext, authorise: AuthoriseStored, readBackMs: ReadBackMs) {
  const { journal, clock, orphans, active, events } = context
  const resting = createResting(context)
  const finishBatch = createFinisher(context, authorise, readBackMs)
  const running = new Map<number, Promise<void>>()
  /** Number of due records that the last search found in resting batches. The next search raises its limit by this number. */
  let dueResting = 0
  let dueFromMs = 0
  /** The batches to finish, in reverse order: the next batch is the last item. */
  let queue: Work[] = []
  let stopping = false
  let ticking: Promise<void> | undefined
  let timer: (() => void) | undefined

  const failed = (cause: unknown): void =>
    events.recoveryFailed({ code: cause instanceof AdapterError ? cause.code : 'ADP_INTERNAL' })
  const isBusy = (batch: number): boolean => running.has(batch) || active.has(batch)

  const wait = (batch: number, waiting: Waiting): void => {
    const { partner, missing } = waiting
    if (resting.waiting(batch)?.missing !== missing) events.recoveryWaits({ partner, missing })
    resting.wait(batch, waiting)
  }
  const run = (next: Work): void => {
    const { batch } = next
    const job = finishBatch(next)
      .then(
        (end) => {
          if (end === 'done') resting.delete(batch)
          else if (end === 'later') resting.failed(batch)
          else if (end !== 'early') wait(batch, end)
        },
        (cause: unknown) => {
          failed(cause)
          const hasCalled = !(cause instanceof AdapterError) || cause.code === 'ADP_OUTCOME_UNKNOWN'
          resting.failed(batch, hasCalled)
        },
      )
      .finally(() => {
        running.delete(batch)
        fill()
      })
    running.set(batch, job)
  }
  const fill = (): void => {
    for (let at = queue.length - 1; at >= 0 && !stopping && running.size < BATCHES_AT_A_TIME; at -= 1) {
      const next = queue[at]
      if (next === undefined || isBehindOrphans(context, next)) continue
      queue.splice(at, 1)
      if (!running.has(next.batch)) run(next)
    }
  }
  const takeOver = async (): Promise<void> => {
    const taken = await journal.takeOver()
    const abandoned = await journal.findAbandoned((batch) => isBusy(batch) || orphans.has(batch))
    const now = journal.lease()
    if (now !== undefined) {
      active.endOtherLeases(now)
      // Forgets the orphans of a lost lease, because this or another instance takes over their batches again.
      for (const [batch, { lease }] of orphans) if (lease !== now) orphans.delete(batch)
    }
    for (const { batch, after, lease } of [...taken, ...abandoned])
      markOrphaned(orphans, batch, after, lease, clock.nowMs())
  }
  const readDue = async (): Promise<readonly Work[]> => {
    const startedMs = clock.nowMs()
    const due = await journal.due(context.nowMs(), DUE_AT_A_TIME + dueResting)
    dueResting = due.reduce(
      (sum, { batch, positions }) => sum + (resting.has(batch) ? positions.length : 0),
      0,
    )
    const nowMs = clock.nowMs()
    dueFromMs = dueResting > DUE_AT_A_TIME ? nowMs + (nowMs - startedMs) / DUE_SHARE : 0
    return due
  }
  const tick = async (): Promise<void> => {
    await takeOver()
    await handOver(context, resting, isBusy)
    await letNewerPass(context, resting, isBusy, readBackMs)
    const due = clock.nowMs() < dueFromMs ? queue.filter(isDue).reverse() : await readDue()
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
    /** Takes over the orphans of dead instances and retries due records, first immediately and then every second. */
    start,
    /** Retries batches that wait for credentials or for their partner, because a new configuration may provide what they lack. */
    retryWaiting: (): void => resting.endWaits(),
    /** Starts no further batches, and resolves once the batches in progress have ended. */
    stop: async (): Promise<void> => {
      stopping = true
      timer?.()
      await ticking
      await Promise.all(running.values())
    },
  }
}

/**
 * Returns true if each orphan of a batch waits for an older orphan that no run works on. A run of this batch could only wait, and would
 * occupy one of the `BATCHES_AT_A_TIME` runs. The batch is considered again whenever a run ends.
 */
function isBehindOrphans({ orphans, active }: WriteContext, { batch, positions }: Work): boolean {
  const after = orphans.get(batch)?.after
  if (positions !== undefined || after === undefined) return false
  const isLeft = (ref: RecordRef): boolean =>
    !active.has(ref.batch) && orphans.get(ref.batch)?.after.has(ref.position) === true
  for (const older of after.values()) if (!older.some(isLeft)) return false
  return after.size > 0
}

/** The time in milliseconds that a batch rests after a failed run. The time doubles after each further run whose calls to V3 fail. */
const AFTER_FAILURE_MS = 5_000
const LONGEST_REST_MS = 40_000

const isDue = ({ positions }: Work): boolean => positions !== undefined

type Resting = ReturnType<typeof createResting>

/** Creates the list of batches that recovery must not finish now, because a prerequisite is missing or their last run failed recently. */
function createResting({ clock, accepted, nowMs }: WriteContext) {
  const rests = new Map<number, Waiting | { readonly retryMs: number; readonly restMs: number }>()
  const isStillMissing = (batch: number, { missing, owner, sender, untilMs }: Waiting): boolean => {
    if (nowMs() >= untilMs) return false
    if (missing === 'partner') return true
    if (accepted.senderOf(batch) !== undefined || accepted.of(owner).length > 0) return false
    return sender === undefined || accepted.withHash(sender) === undefined
  }
  /** Returns the prerequisite that a batch waits for, or `undefined` if the batch does not wait or the prerequisite is available now. */
  const waiting = (batch: number): Waiting | undefined => {
    const rest = rests.get(batch)
    return rest !== undefined && 'missing' in rest && isStillMissing(batch, rest) ? rest : undefined
  }
  return {
    wait: (batch: number, rest: Waiting): void => void rests.set(batch, rest),
    failed: (batch: number, hasCalled = false): void => {
      const last = rests.get(batch)
      const isAgain = hasCalled && last !== undefined && 'retryMs' in last
      const restMs = isAgain ? Math.min(last.restMs * 2, LONGEST_REST_MS) : AFTER_FAILURE_MS
      rests.set(batch, { retryMs: clock.nowMs() + restMs, restMs })
    },
    has: (batch: number): boolean => {
      const rest = rests.get(batch)
      if (rest === undefined || 'missing' in rest) return waiting(batch) !== undefined
      return clock.nowMs() < rest.retryMs
    },
    waiting,
    delete: (batch: number): void => void rests.delete(batch),
    endWaits: (): void => {
      for (const [batch, rest] of rests) if ('missing' in rest) rests.delete(batch)
    },
  }
}

/**
 * Hands orphans without credentials over to the instances that asked for them. An instance asks for orphans once a client has sent
 * credentials to that instance.
 */
async function handOver(
  { journal, orphans }: WriteContext,
  resting: Resting,
  isBusy: (batch: number) => boolean,
): Promise<void> {
  const unfinishable = [...orphans.keys()].filter(
    (batch) => resting.waiting(batch)?.missing === 'credentials' && !isBusy(batch),
  )
  if (unfinishable.length === 0) return
  for (const batch of await journal.handOver(unfinishable)) {
    orphans.delete(batch)
    resting.delete(batch)
  }
}

/** Ends orphans that lack a prerequisite and delay newer records, once the read-back time is over. Skips batches that are in a run. */
async function letNewerPass(
  context: WriteContext,
  resting: Resting,
  isBusy: (batch: number) => boolean,
  readBackMs: ReadBackMs,
): Promise<void> {
  const { journal, orphans, clock } = context
  const partners = new Map<number, string>()
  for (const [batch, { after, sinceMs }] of orphans) {
    const waiting = resting.waiting(batch)
    if (waiting === undefined || isBusy(batch)) continue
    const { partner, together } = waiting
    if (clock.nowMs() >= sinceMs + readBackMs(partner, after.size, together)) partners.set(batch, partner)
  }
  if (partners.size === 0) return
  const blocked = (await journal.blocking([...partners.keys()])).filter(({ batch, position }) =>
    orphans.get(batch)?.after.has(position),
  )
  for (const [batch, refs] of Map.groupBy(blocked, (ref) => ref.batch)) {
    const orphan = orphans.get(batch)
    if (orphan === undefined) continue
    const ended = new Set(refs.map(({ position }) => position))
    const whose = { batch, partner: partners.get(batch), lease: orphan.lease }
    await deadLetterSuperseded(context, whose, [...ended]).catch((cause: unknown) => {
      // ADP_JOURNAL_LOST means that another instance has taken over the batch. That instance finishes the orphans.
      if (cause instanceof AdapterError && cause.code === 'ADP_JOURNAL_LOST') return
      throw cause
    })
    const left = new Map([...orphan.after].filter(([position]) => !ended.has(position)))
    if (left.size === 0) orphans.delete(batch)
    else orphans.set(batch, { ...orphan, after: left })
  }
}
