import type { Slices } from '../http/slices.ts'
import { isReplyTo } from '../translate/index.ts'
import type { NotApplied } from '../upstream/index.ts'
import {
  type BodyProfile,
  encodeRecord,
  type PostOutcome,
  runOrdered,
  type UnknownReason,
  type UpstreamError,
  type V3Record,
  type V3Reply,
  type V3Writes,
} from '../v3/index.ts'
import { isDenial } from './denial.ts'

/** One record to be posted. */
export interface WriteTask {
  /** Its place in the request. */
  readonly position: number
  readonly record: V3Record
  /** Tasks with the same key run one after another. */
  readonly key: string
  /** `readBack` for one that may have been applied before: it is looked for, and posted only if it is not there. */
  readonly first: 'post' | 'readBack'
  /** Older records of the same key: resolves false when they did not end in time. */
  readonly after: Promise<boolean> | undefined
}

/** Receives the outcome of the record at `position`, once for each task. */
export type OnOutcome = (position: number, outcome: PostOutcome) => void

/** How one request's records are sent. */
export interface PostOptions {
  readonly writes: V3Writes
  /** Records under way at the same time, where the writes do not say. */
  readonly concurrency: number
  readonly bodyProfile: BodyProfile
  /** Finds out what became of a write that may have been applied, and posts it again where it was not. */
  readonly resolve: (
    record: V3Record,
    post: PostOnce,
    reason: UnknownReason,
    sentMs?: number,
  ) => Promise<PostOutcome>
  /** Told of each record that V3 accepted, with its answer. */
  readonly onAccepted?: (record: V3Record, reply: V3Reply) => void
  /** By the clock, when those that are looked for first were sent last at the latest. Default now. */
  readonly sentMs?: number | undefined
  readonly permission: Permission
  /** Cuts the sending of large records. */
  readonly slices: Slices
}

/** Whether the records of a run may still be posted from this process. */
export interface Permission {
  /** False while others may have taken over. Asked when a POST goes to its socket, so it must cost next to nothing. */
  maySend(): boolean
  /** Asks the journal after `maySend` gave false; resolves false where the records are not this run's any longer. */
  renew(): Promise<boolean>
}

/** Posts one record, and again where it was not applied and that may help. */
export type PostOnce = (onOutcome: (outcome: PostOutcome) => void) => void

const budgetSpent: NotApplied = { kind: 'notApplied', reason: 'budget', retryAfterMs: undefined }
const leaseLost: NotApplied = { kind: 'notApplied', reason: 'leaseLost', retryAfterMs: undefined }

/**
 * Sends records and reports each outcome. Returns the upstream's error when it denied the credentials before anything else
 * was answered: then no outcome was reported, nothing was applied, and the request as a whole gets that status (product
 * contract 1). Once an outcome was reported, a denial is told per part.
 */
export async function postRecords(
  tasks: readonly WriteTask[],
  options: PostOptions,
  onOutcome: OnOutcome,
): Promise<UpstreamError | undefined> {
  const denied = new Map<number, Extract<PostOutcome, { kind: 'refused' }>>()
  const sent = new Set<number>()
  let released = false
  const report = (position: number, outcome: PostOutcome): void => {
    if (!released && outcome.kind === 'refused' && isDenial(outcome.error)) {
      denied.set(position, outcome)
      return
    }
    released = true
    for (const [earlier, held] of denied) onOutcome(earlier, held)
    denied.clear()
    onOutcome(position, outcome)
  }
  const run = (list: readonly WriteTask[], stopped: () => boolean): Promise<void> =>
    runOrdered({
      count: list.length,
      concurrency: options.writes.atATime ?? options.concurrency,
      keyOf: (index) => list[index]?.key ?? '',
      holdOf: (index) => list[index]?.after?.then(() => undefined),
      start: (index, done) => {
        const task = list[index]
        if (task === undefined) return
        sent.add(task.position)
        sendOne(task, options, (outcome) => {
          report(task.position, outcome)
          done(index)
        })
      },
      stopped,
      pause: () => (options.slices.spend(0) ? options.slices.next() : undefined),
    })
  // While nothing but denials has come, no further record is sent.
  await run(tasks, () => denied.size > 0)
  const [first] = denied.values()
  if (first !== undefined) return first.error
  // A denial among the first answers was an exception: the rest goes out after all.
  const rest = tasks.filter(({ position }) => !sent.has(position))
  if (rest.length > 0) await run(rest, () => false)
  return undefined
}

function sendOne(task: WriteTask, options: PostOptions, onOutcome: (outcome: PostOutcome) => void): void {
  if (task.after === undefined) start(task, options, onOutcome)
  else
    void task.after.then((inTime) => {
      if (inTime) start(task, options, onOutcome)
      else onOutcome(notSent(task, options.permission.maySend() ? budgetSpent : leaseLost))
    })
}

/** What becomes of a record that is not sent now: one that may have been applied before is unknown still. */
function notSent({ first }: WriteTask, why: NotApplied): PostOutcome {
  return first === 'readBack' ? { kind: 'unknown', reason: 'connectionLost' } : why
}

function start(task: WriteTask, options: PostOptions, onOutcome: (outcome: PostOutcome) => void): void {
  const { permission } = options
  if (permission.maySend()) sendNow(task, options, onOutcome)
  else
    void permission.renew().then((isOurs) => {
      if (isOurs) sendNow(task, options, onOutcome)
      else onOutcome(notSent(task, leaseLost))
    })
}

/** Posts a record again that was not applied, as long as that may help; one that was stopped waits for the journal's word. */
async function postAgain(
  body: string,
  first: NotApplied,
  { writes, permission }: PostOptions,
): Promise<PostOutcome> {
  let last = first
  for (;;) {
    const stopped = last.reason === 'leaseLost'
    if (stopped && (writes.leftMs() <= 0 || !(await permission.renew()))) return last
    const outcome = await (stopped
      ? new Promise<PostOutcome>((resolve) => writes.post(body, resolve))
      : writes.repost(body, last))
    if (outcome.kind !== 'notApplied') return outcome
    if (!stopped && outcome.reason !== 'leaseLost') return outcome
    last = outcome
  }
}

function sendNow(task: WriteTask, options: PostOptions, onOutcome: (outcome: PostOutcome) => void): void {
  const { writes, resolve } = options
  const { record } = task
  const body = encodeRecord(record, options.bodyProfile)
  options.slices.spend(body.length)
  const check = (outcome: PostOutcome, told: (outcome: PostOutcome) => void): void => {
    if (outcome.kind === 'accepted') {
      // An answer that speaks of another record says nothing of this one.
      if (!isReplyTo(record, outcome.reply)) {
        told({ kind: 'unknown', reason: 'otherRecord' })
        return
      }
      options.onAccepted?.(record, outcome.reply)
    }
    told(outcome)
  }
  const post: PostOnce = (told) => {
    writes.post(body, (outcome) => {
      if (outcome.kind !== 'notApplied') check(outcome, told)
      else
        void postAgain(body, outcome, options).then((last) => {
          check(last, told)
        })
    })
  }
  if (task.first === 'readBack') void resolve(record, post, 'connectionLost', options.sentMs).then(onOutcome)
  else
    post((outcome) => {
      if (outcome.kind === 'unknown') void resolve(record, post, outcome.reason).then(onOutcome)
      else onOutcome(outcome)
    })
}
