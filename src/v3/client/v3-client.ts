import { Pool } from 'undici'

import { PostHandler } from './post-handler.ts'
import type { PostOutcome } from '../errors/post-outcome.ts'

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
  /** Milliseconds since the epoch. */
  readonly nowMs: () => number
}

/** The credentials of the outer request, mapped for the upstream; inner ones are never forwarded (batch-wire F24). */
export interface V3Credentials {
  readonly authorization: string
  readonly subscriptionKey: string
}

/** The writes of one batch: they share credentials and a budget of time. */
export interface V3Writes {
  /** Posts one record's JSON. Never rejects and never retries: a POST is not idempotent. */
  post(body: string): Promise<PostOutcome>
  /** Gives up the timer of the budget. */
  close(): void
}

export interface V3Client {
  /** Opens the writes of one batch. After `budgetMs` what has not left is `notApplied`, what has left is `unknown`. */
  openWrites(credentials: V3Credentials, budgetMs: number): V3Writes
  /** Waits for what is in flight, then closes the connections. */
  close(): Promise<void>
}

/**
 * Creates the client of one V3 upstream over an undici Pool. Idle connections are dropped after 4 s, below the idle time of
 * usual gateways: a connection closed at the moment of reuse costs a POST whose outcome nobody knows.
 */
export function createV3Client(options: V3ClientOptions): V3Client {
  const { baseUrl, timeouts, nowMs } = options
  const pool = new Pool(baseUrl.origin, {
    connections: options.connections,
    pipelining: 1,
    connect: { timeout: timeouts.connectMs },
    headersTimeout: timeouts.headersMs,
    bodyTimeout: timeouts.bodyMs,
    keepAliveTimeout: 4_000,
  })
  const path = `${baseUrl.pathname.replace(/\/+$/, '')}/Attendance/V3/AttendanceRecords`
  return {
    openWrites: (credentials, budgetMs) => {
      const headers = [
        'content-type', 'application/json',
        'accept', 'application/json',
        'prefer', 'return=representation',
        'authorization', credentials.authorization,
        'ocp-apim-subscription-key', credentials.subscriptionKey,
      ] // prettier-ignore
      return openWrites(
        (handler, body) => pool.dispatch({ path, method: 'POST', headers, body }, handler),
        budgetMs,
        nowMs,
      )
    },
    close: () => pool.close(),
  }
}

function openWrites(
  dispatch: (handler: PostHandler, body: string) => void,
  budgetMs: number,
  nowMs: () => number,
): V3Writes {
  // Slots that are used again: a Set copies itself as it turns over, and its copies keep every handler from the collector.
  const inFlight: (PostHandler | undefined)[] = []
  const free: number[] = []
  let spent = false
  const timer = setTimeout(() => {
    spent = true
    for (const handler of inFlight) handler?.expire()
  }, budgetMs)
  return {
    post: (body) => {
      const slot = free.pop() ?? inFlight.length
      const handler = new PostHandler(nowMs, () => {
        inFlight[slot] = undefined
        free.push(slot)
      })
      inFlight[slot] = handler
      if (spent) handler.expire()
      else dispatch(handler, body)
      return handler.outcome
    },
    close: () => {
      clearTimeout(timer)
    },
  }
}
