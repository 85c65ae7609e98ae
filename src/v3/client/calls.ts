import type { PostOutcome } from '../errors/post-outcome.ts'
import type { Clock } from './clock.ts'
import { type Expirable, PostHandler, type ReplyReader, type Unanswered } from './post-handler.ts'
import { type NotApplied, retryWaitMs } from './retry.ts'
import { type Share, soleShare } from './shares/share.ts'
import type { Throttle } from './throttle.ts'

/** The pace of a partner's writes. */
export interface Pace {
  readonly throttle: Throttle
}

/** Hands a body to the connections; the handler is told what becomes of it. */
export type Dispatch = <Outcome>(handler: PostHandler<Outcome>, body: string) => void

/** Is told what became of a POST. */
export type OnPost = (outcome: PostOutcome) => void

/** The calls of one batch: one budget of time, one pace. */
export interface Calls {
  /** Sends one request and tells what became of it, once. Never retries: a POST is not idempotent. */
  send<Outcome>(
    dispatch: Dispatch,
    body: string,
    reader: ReplyReader<Outcome>,
    onOutcome: (outcome: Outcome | Unanswered) => void,
  ): void
  /**
   * Posts a record again while nothing was applied and time is left (`retryWaitMs`); resolves its last outcome. An unknown
   * outcome ends it: it is not repeated here.
   */
  repeat(first: NotApplied, post: (onOutcome: OnPost) => void): Promise<PostOutcome>
  /** The time that is left, ms. */
  leftMs(): number
  /** The longest time that a call stood in the queue so far, ms. */
  queuedMs(): number
  /** Gives up the timer of the budget. */
  close(): void
}

/**
 * Opens the calls of one batch. After `budgetMs` what has not left is `notApplied`, what has left is `unknown`. `maySend` is
 * asked when a request goes to its socket; on false it is `notApplied`.
 */
export function openCalls(
  budgetMs: number,
  clock: Clock,
  pace: Pace | undefined,
  maySend?: () => boolean,
  share: Share = soleShare,
): Calls {
  // Slots that are used again: a Set copies itself as it turns over, and its copies keep every handler from the collector.
  const inFlight: (Expirable | undefined)[] = []
  const free: number[] = []
  const deadlineMs = clock.nowMs() + budgetMs
  let spent = false
  let queuedMs = 0
  // A service that took no connection all through one record's tries costs the others no more waiting.
  let unreachable = false
  const cancel = clock.after(budgetMs, () => {
    spent = true
    for (const handler of inFlight) handler?.expire()
  })
  const release = (slot: number): void => {
    inFlight[slot] = undefined
    free.push(slot)
  }
  const sendNow: Calls['send'] = (dispatch, body, reader, onOutcome) => {
    const slot = free.pop() ?? inFlight.length
    const handler = new PostHandler(reader, slot, onOutcome, release, maySend)
    inFlight[slot] = handler
    if (spent) handler.expire()
    else dispatch(handler, body)
  }
  const sendPaced =
    ({ throttle }: Pace): Calls['send'] =>
    (dispatch, body, reader, onOutcome) => {
      const ownDeadlineMs = throttle.nowMs() + deadlineMs - clock.nowMs()
      void throttle.acquire('write', ownDeadlineMs, share).then((admission) => {
        queuedMs = Math.max(queuedMs, admission.waitedMs)
        if (admission.admitted) {
          sendNow(dispatch, body, reader, onOutcome)
          return
        }
        const reason = admission.reason === 'full' ? 'queueFull' : 'budget'
        onOutcome({ kind: 'notApplied', reason, retryAfterMs: undefined })
      })
    }
  return {
    send: pace === undefined ? sendNow : sendPaced(pace),
    repeat: async (first, post) => {
      let last: NotApplied = first
      for (let attempt = 0; ; attempt += 1) {
        const waitMs = retryWaitMs(last, attempt)
        if (waitMs === undefined && last.reason === 'notConnected') unreachable = true
        const hopeless = last.reason === 'notConnected' && unreachable
        if (waitMs === undefined || hopeless || clock.nowMs() + waitMs >= deadlineMs) return last
        // The limit is the key's: while it holds, no call of anybody with this key has a chance.
        if (last.reason === 'throttled' && pace !== undefined) pace.throttle.penalise(waitMs)
        else await new Promise<void>((resolve) => clock.after(waitMs, resolve))
        const outcome = await new Promise<PostOutcome>(post)
        if (outcome.kind !== 'notApplied') return outcome
        last = outcome
      }
    },
    leftMs: () => deadlineMs - clock.nowMs(),
    queuedMs: () => queuedMs,
    close: cancel,
  }
}
