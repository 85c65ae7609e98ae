import type { Clock } from '../clock.ts'
import { type NotApplied, retryWaitMs, type Unanswered } from './post-failure.ts'
import { type Expirable, PostHandler, type ReplyReader } from './post-handler.ts'
import { type QueueKey, soleQueue } from './quota.ts'
import type { RateLimit } from './rate-limit.ts'

/** Hands a body to the connections; the handler follows it. */
export type Dispatch = <Outcome>(handler: PostHandler<Outcome>, body: string) => void

/** The POSTs of one batch: they share a deadline and a rate limit. */
interface Deadline {
  /** Sends one request and reports its outcome, once. Never retries: a POST is not idempotent. */
  send<Outcome>(
    dispatch: Dispatch,
    body: string,
    reader: ReplyReader<Outcome>,
    onOutcome: (outcome: Outcome | Unanswered) => void,
  ): void
  /**
   * Posts again while nothing was applied and time is left (`retryWaitMs`); resolves with the last outcome. An unknown
   * outcome ends it: it is not repeated here.
   */
  repeat<Outcome extends { readonly kind: string }>(
    first: NotApplied,
    post: (onOutcome: (outcome: Outcome | NotApplied) => void) => void,
  ): Promise<Outcome | NotApplied>
  /** Sends nothing any more: what has not left is not applied. What has left goes on. */
  withdraw(): void
  /** The time that is left, ms. */
  leftMs(): number
  /** The longest time that a call waited for the rate limit so far, ms. */
  queuedMs(): number
  /** Cancels the timer of the deadline. */
  close(): void
}

/** The options of the calls of a batch. */
export interface DeadlineOptions {
  readonly budgetMs: number
  readonly clock: Clock
  /** Undefined: no limit. */
  readonly rateLimit: RateLimit | undefined
  /** Asked when a request is written to its socket; on false it is not written, and `notApplied`. */
  readonly maySend?: (() => boolean) | undefined
  readonly queueKey?: QueueKey | undefined
}

/** Opens the deadline of one batch. After `budgetMs`, unsent records are `notApplied`, sent ones `unknown`. */
export function openDeadline({
  budgetMs,
  clock,
  rateLimit,
  maySend,
  queueKey = soleQueue,
}: DeadlineOptions): Deadline {
  // Slots that are used again: a Set copies itself as it turns over, and its copies keep every handler from the collector.
  const inFlight: (Expirable | undefined)[] = []
  const free: number[] = []
  const deadlineMs = clock.nowMs() + budgetMs
  let spent = false
  const withdrawn = new AbortController()
  let queuedMs = 0
  // An upstream that took no connection through all tries of one record costs the others no more waiting.
  let unreachable = false
  const cancel = clock.after(budgetMs, () => {
    spent = true
    for (const handler of inFlight) handler?.expire()
  })
  const release = (slot: number): void => {
    inFlight[slot] = undefined
    free.push(slot)
  }
  const sendNow: Deadline['send'] = (dispatch, body, reader, onOutcome) => {
    const slot = free.pop() ?? inFlight.length
    const handler = new PostHandler(reader, slot, onOutcome, release, maySend)
    inFlight[slot] = handler
    if (spent) handler.expire()
    else dispatch(handler, body)
  }
  const sendLimited =
    (limit: RateLimit): Deadline['send'] =>
    (dispatch, body, reader, onOutcome) => {
      const ownDeadlineMs = limit.nowMs() + deadlineMs - clock.nowMs()
      void limit.acquire('write', ownDeadlineMs, queueKey, withdrawn.signal).then((admission) => {
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
    send: rateLimit === undefined ? sendNow : sendLimited(rateLimit),
    repeat: async <Outcome extends { readonly kind: string }>(
      first: NotApplied,
      post: (onOutcome: (outcome: Outcome | NotApplied) => void) => void,
    ) => {
      let last = first
      for (let attempt = 0; ; attempt += 1) {
        const waitMs = retryWaitMs(last, attempt)
        if (waitMs === undefined && last.reason === 'notConnected') unreachable = true
        const hopeless = last.reason === 'notConnected' && unreachable
        const isOver = withdrawn.signal.aborted || clock.nowMs() + (waitMs ?? 0) >= deadlineMs
        if (waitMs === undefined || hopeless || isOver) return last
        // The limit is the key's: while it is paused, no call with this key can succeed.
        if (last.reason === 'throttled' && rateLimit !== undefined) rateLimit.pauseFor(waitMs)
        else
          await new Promise<void>((resolve) => {
            clock.after(waitMs, resolve)
            withdrawn.signal.addEventListener('abort', () => resolve(), { once: true })
          })
        const outcome = await new Promise<Outcome | NotApplied>(post)
        if (!isNotApplied(outcome)) return outcome
        last = outcome
      }
    },
    withdraw: () => {
      spent = true
      withdrawn.abort()
      for (const handler of inFlight) if (handler?.hasLeft() === false) handler.expire()
    },
    leftMs: () => deadlineMs - clock.nowMs(),
    queuedMs: () => queuedMs,
    close: cancel,
  }
}

function isNotApplied(outcome: { readonly kind: string }): outcome is NotApplied {
  return outcome.kind === 'notApplied'
}
