import { Pool } from 'undici'

import type { PostOutcome } from '../errors/post-outcome.ts'
import { openCalls, type Dispatch, type Pace } from './calls.ts'
import type { Clock } from './clock.ts'
import type { ReplyReader } from './post-handler.ts'
import { readOutcome } from './read-outcome.ts'
import type { NotApplied } from './retry.ts'

/** Where V3 is and how patient the client is. */
export interface V3ClientOptions {
  /** Base address; `/Attendance/V3/AttendanceRecords` is added to its path. */
  readonly baseUrl: URL
  /** Open connections at the most, one request each at a time. Default 32. */
  readonly connections: number
  readonly timeouts: {
    readonly connectMs: number
    /** From the request sent to the status line. */
    readonly headersMs: number
    /** Between two pieces of the body. */
    readonly bodyMs: number
  }
  /** Milliseconds since the epoch: what a date in `Retry-After` is set against. */
  readonly nowMs: () => number
  readonly clock: Clock
}

/** The credentials of the outer request, mapped for the upstream; inner ones are never forwarded (batch-wire F24). */
export interface V3Credentials {
  readonly authorization: string
  readonly subscriptionKey: string
}

/** The writes of one batch: they share credentials, a budget of time and a pace. */
export interface V3Writes {
  /** Posts one record's JSON once. Never rejects. */
  post(body: string): Promise<PostOutcome>
  /** Posts a record again whose first post was not applied, as long as that may help and time is left. Never rejects. */
  repost(body: string, first: NotApplied): Promise<PostOutcome>
  /** The longest time that a call stood in the throttle's queue so far, ms. */
  queuedMs(): number
  /** Gives up the timer of the budget. */
  close(): void
}

export interface V3Client {
  /**
   * Opens the writes of one batch. After `budgetMs` what has not left is `notApplied`, what has left is `unknown`. Without
   * `pace` nothing is held back.
   */
  openWrites(credentials: V3Credentials, budgetMs: number, pace?: Pace): V3Writes
  /** Waits for what is in flight, then closes the connections. */
  close(): Promise<void>
}

/** An upstream's answer to one record is small. */
const MAX_REPLY_BYTES = 1_048_576

/**
 * Creates the client of one V3 upstream over an undici Pool. Idle connections are dropped after 4 s, below the idle time of
 * usual gateways: a connection closed at the moment of reuse costs a POST whose outcome nobody knows.
 */
export function createV3Client(options: V3ClientOptions): V3Client {
  const { baseUrl, timeouts, nowMs, clock } = options
  const pool = new Pool(baseUrl.origin, {
    connections: options.connections,
    pipelining: 1,
    connect: { timeout: timeouts.connectMs },
    headersTimeout: timeouts.headersMs,
    bodyTimeout: timeouts.bodyMs,
    keepAliveTimeout: 4_000,
  })
  const path = `${baseUrl.pathname.replace(/\/+$/, '')}/Attendance/V3/AttendanceRecords`
  const single: ReplyReader<PostOutcome> = {
    maxReplyBytes: MAX_REPLY_BYTES,
    read: ({ status, body, retryAfter }) => readOutcome(status, body.toString('utf8'), retryAfter, nowMs()),
  }
  return {
    openWrites: (credentials, budgetMs, pace) => {
      const headers = [
        'content-type', 'application/json',
        'accept', 'application/json',
        'prefer', 'return=representation',
        'authorization', credentials.authorization,
        'ocp-apim-subscription-key', credentials.subscriptionKey,
      ] // prettier-ignore
      const dispatch: Dispatch = (handler, body) =>
        void pool.dispatch({ path, method: 'POST', headers, body }, handler)
      const calls = openCalls(budgetMs, clock, pace)
      const post = (body: string): Promise<PostOutcome> => calls.send(dispatch, body, single)
      return {
        post,
        repost: (body, first) => calls.repeat(first, () => post(body)),
        queuedMs: () => calls.queuedMs(),
        close: () => calls.close(),
      }
    },
    close: () => pool.close(),
  }
}
