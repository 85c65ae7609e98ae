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
import type { FirstStep } from './first-step.ts'

/** One record to be posted. */
export interface WriteTask {
  /** Its place in the request. */
  readonly position: number
  readonly record: V3Record
  /** Tasks with the same key run one after another. */
  readonly key: string
  readonly first: FirstStep
  /** Older records of the same key: resolves false when they did not end in time. */
  readonly after: Promise<boolean> | undefined
}

/** Receives the outcome of the record at `position`, once for each task. */
export type OnOutcome = (position: number, outcome: PostOutcome) => void

/** How the records of one request are posted. */
export interface PostOptions {
  readonly writes: V3Writes
  /** Records under way at the same time, where the writes do not say. */
  readonly concurrency: number
  readonly bodyProfile: BodyProfile
  /** Reads back a write that may have been applied, and posts it again where it was not. */
  readonly readBack: ResolveUnknown
  /** The clock, ms. */
  readonly nowMs: () => number
  /** Called with each record that V3 accepted, and its answer. */
  readonly onAccepted?: (record: V3Record, reply: V3Reply) => void
  /** By the clock: records that are read back first were not sent after this. Default now. */
  readonly sentMs?: number | undefined
  readonly permission: Permission
  /** Lets other requests run between large records. */
  readonly slices: Slices
}

/** Whether the records of a run may still be posted from this process. */
export interface Permission {
  /** False while others may have taken over. Asked when a POST goes to its socket, so it must cost next to nothing. */
  maySend(): boolean
  /** Asks the journal after `maySend` gave false; resolves false where the records are not this run's any longer. */
  renew(): Promise<boolean>
}

/** When a record was sent, by the clock. */
export interface Sent {
  /** By this run, by an earlier one, or not at all. */
  readonly how: 'now' | 'before' | 'never'
  /** It was not sent before this, ms; undefined: since it was received. */
  readonly fromMs?: number | undefined
  /** It was not sent after this, ms; undefined: until now. */
  readonly toMs?: number | undefined
}

/** Posts one record, and again where it was not applied and that may help. */
export type PostOnce = (onOutcome: (outcome: PostOutcome) => void) => void

/** The record that is read back. */
export type ReadTask = Pick<WriteTask, 'record' | 'position'>

/** Finds out what became of a record that may have been applied, and posts it again where it was not. */
export type ResolveUnknown = (
  task: ReadTask,
  post: PostOnce,
  reason: UnknownReason,
  sent: Sent,
) => Promise<PostOutcome>

const budgetSpent: NotApplied = { kind: 'notApplied', reason: 'budget', retryAfterMs: undefined }
const unread: NotApplied = { kind: 'notApplied', reason: 'unavailable', retryAfterMs: undefined }
const leaseLost: NotApplied = { kind: 'notApplied', reason: 'leaseLost', retryAfterMs: undefined }

/**
 * Posts records and reports each outcome. Returns V3's error when it denied the credentials before any other answer: then no
 * outcome was reported, nothing was applied, and the request as a whole gets that status (product contract 1). After the first
 * outcome, a denial is reported for its record.
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
    if (denied.size > 0) {
      for (const [earlier, held] of denied) onOutcome(earlier, held)
      // Only now: a map that is cleared allocates a new table.
      denied.clear()
    }
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
  // As long as every answer is a denial, no further record is sent.
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

/** The outcome of a record that is not sent now; one that may have been applied before stays unknown. */
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

/** Posts a record again that was not applied, while that may help; one that was stopped waits for the journal to confirm the lease. */
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

/** Where nothing can be read, the record stays what it was: not applied. */
async function postChecked(
  task: WriteTask,
  post: PostOnce,
  readBack: PostOptions['readBack'],
): Promise<PostOutcome> {
  const posted: WriteTask[] = []
  const outcome = await readBack(
    task,
    (report) => {
      posted.push(task)
      post(report)
    },
    'connectionLost',
    { how: 'never' },
  )
  const isUnread =
    posted.length === 0 &&
    outcome.kind === 'unknown' &&
    outcome.reason !== 'overwritten' &&
    outcome.reason !== 'superseded'
  return isUnread ? unread : outcome
}

function sendNow(task: WriteTask, options: PostOptions, onOutcome: (outcome: PostOutcome) => void): void {
  const { writes, readBack } = options
  const { record } = task
  const body = encodeRecord(record, options.bodyProfile)
  options.slices.spend(body.length)
  const check = (outcome: PostOutcome, report: (outcome: PostOutcome) => void): void => {
    if (outcome.kind === 'accepted') {
      // An answer about another record says nothing about this one.
      if (!isReplyTo(record, outcome.reply)) {
        report({ kind: 'unknown', reason: 'otherRecord' })
        return
      }
      options.onAccepted?.(record, outcome.reply)
    }
    report(outcome)
  }
  const post: PostOnce = (report) => {
    writes.post(body, (outcome) => {
      if (outcome.kind !== 'notApplied') check(outcome, report)
      else
        void postAgain(body, outcome, options).then((last) => {
          check(last, report)
        })
    })
  }
  if (task.first === 'readBack')
    void readBack(task, post, 'connectionLost', { how: 'before', toMs: options.sentMs }).then(onOutcome)
  else if (task.first === 'check') void postChecked(task, post, readBack).then(onOutcome)
  else {
    const fromMs = options.nowMs()
    post((outcome) => {
      if (outcome.kind === 'unknown')
        void readBack(task, post, outcome.reason, { how: 'now', fromMs }).then(onOutcome)
      else onOutcome(outcome)
    })
  }
}
