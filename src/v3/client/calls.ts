import type { PostOutcome } from '../errors/post-outcome.ts'
import type { Clock } from './clock.ts'
import { type Expirable, PostHandler, type ReplyReader, type Unanswered } from './post-handler.ts'
import { type NotApplied, retryWaitMs } from './retry.ts'
import type { Throttle } from './throttle.ts'

/** The pace of a partner's writes. */
export interface Pace {
  readonly throttle: Throttle
  /** Whose calls these are; partners with one key take turns. */
  readonly share: string
}

/** Hands a body to the connections; the handler is told what becomes of it. */
export type Dispatch = <Outcome>(handler: PostHandler<Outcome>, body: string) => void

/** The calls of one batch: one budget of time, one pace. */
export interface Calls {
  /** Sends one request. Never rejects and never retries: a POST is not idempotent. */
  send<Outcome>(dispatch: Dispatch, body: string, reader: ReplyReader<Outcome>): Promise<Outcome | Unanswered>
  /**
   * Posts a record again while nothing was applied and time is left (`retryWaitMs`); resolves its last outcome. An unknown
   * outcome ends it: it is never repeated.
   */
  repeat(first: NotApplied, post: () => Promise<PostOutcome>): Promise<PostOutcome>
  /** The longest time that a call stood in the queue so far, ms. */
  queuedMs(): number
  /** Gives up the timer of the budget. */
  close(): void
}

/** Opens the calls of one batch. After `budgetMs` what has not left is `notApplied`, what has left is `unknown`. */
export function openCalls(budgetMs: number, clock: Clock, pace: Pace | undefined): Calls {
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
  const sendNow: Calls['send'] = <Outcome>(
    dispatch: Dispatch,
    body: string,
    reader: ReplyReader<Outcome>,
  ): Promise<Outcome | Unanswered> => {
    const slot = free.pop() ?? inFlight.length
    const handler = new PostHandler<Outcome>(reader, () => {
      inFlight[slot] = undefined
      free.push(slot)
    })
    inFlight[slot] = handler
    if (spent) handler.expire()
    else dispatch(handler, body)
    return handler.outcome
  }
  const sendPaced =
    ({ throttle, share }: Pace): Calls['send'] =>
    async (dispatch, body, reader) => {
      const ownDeadlineMs = throttle.nowMs() + deadlineMs - clock.nowMs()
      const admission = await throttle.acquire('write', ownDeadlineMs, share)
      queuedMs = Math.max(queuedMs, admission.waitedMs)
      if (admission.admitted) return sendNow(dispatch, body, reader)
      const reason = admission.reason === 'full' ? 'queueFull' : 'budget'
      return { kind: 'notApplied', reason, retryAfterMs: undefined }
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
        const outcome = await post()
        if (outcome.kind !== 'notApplied') return outcome
        last = outcome
      }
    },
    queuedMs: () => queuedMs,
    close: cancel,
  }
}
