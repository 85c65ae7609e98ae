import { type Dispatcher, errors, Pool } from 'undici'

import { parseJson, readUpstreamError, type UpstreamError } from '../errors/upstream-error.ts'
import { observeReads } from './observe-reads.ts'
import { readRetryAfter } from './read-outcome.ts'
import type { V3ClientOptions, V3Credentials } from './v3-client.ts'

/** A page of 1000 records is about half of one MiB; more than this is no page. */
const MAX_PAGE_BYTES = 33_554_432

/** What became of one GET. */
export type ReadOutcome =
  | { readonly kind: 'read'; readonly json: unknown }
  | { readonly kind: 'refused'; readonly error: UpstreamError }
  /** No answer came, or the service asks to come again (429; 503, 408); a GET may be repeated. */
  | {
      readonly kind: 'unavailable'
      readonly reason: 'notConnected' | 'throttled' | 'unavailable'
      readonly retryAfterMs: number | undefined
    }
  /** An answer that is none: cut off, not JSON, a redirect, a failure of the service. */
  | { readonly kind: 'broken'; readonly status: number }

/** The reads of one V3 upstream. */
export interface V3Reader {
  /**
   * GETs below `/Attendance/V3/`: `resource` is a set or an entity of one, `query` raw and without `?`. One page is
   * held at a time, so the caller's pace is V3's. Rejects only when `signal` aborts.
   */
  get(resource: string, query: string, credentials: V3Credentials, signal: AbortSignal): Promise<ReadOutcome>
  close(): Promise<void>
}

/** Creates the reader over a pool of its own: long reads must not stand in the way of writes. */
export function createV3Reader(options: V3ClientOptions): V3Reader {
  const { baseUrl, timeouts, nowMs, clock, onCall } = options
  const pool = new Pool(baseUrl.origin, {
    connections: options.connections,
    pipelining: 1,
    connect: { timeout: timeouts.connectMs },
    headersTimeout: timeouts.headersMs,
    bodyTimeout: timeouts.bodyMs,
    maxResponseSize: MAX_PAGE_BYTES,
    keepAliveTimeout: 4_000,
  })
  const upstream = onCall === undefined ? pool : pool.compose(observeReads(onCall, () => clock.nowMs()))
  const root = `${baseUrl.pathname.replace(/\/+$/, '')}/Attendance/V3/`
  return {
    get: async (resource, query, credentials, signal) => {
      let status = 0
      try {
        const reply = await upstream.request({
          method: 'GET',
          path: `${root}${resource}${query === '' ? '' : `?${query}`}`,
          headers: {
            accept: 'application/json',
            authorization: credentials.authorization,
            'ocp-apim-subscription-key': credentials.subscriptionKey,
          },
          signal,
        })
        status = reply.statusCode
        return toOutcome(status, reply.headers['retry-after'], await reply.body.text(), nowMs())
      } catch (cause) {
        if (signal.aborted) throw cause
        return lossOf(cause, status)
      }
    },
    close: () => pool.close(),
  }
}

function toOutcome(
  status: number,
  retryAfter: Dispatcher.ResponseData['headers'][string],
  body: string,
  nowMs: number,
): ReadOutcome {
  if (status >= 200 && status < 300) {
    const json = parseJson(body)
    return json === undefined ? { kind: 'broken', status } : { kind: 'read', json }
  }
  if (status === 429 || status === 503 || status === 408) {
    const header = Array.isArray(retryAfter) ? retryAfter[0] : retryAfter
    const reason = status === 429 ? 'throttled' : 'unavailable'
    return { kind: 'unavailable', reason, retryAfterMs: readRetryAfter(header, body, nowMs) }
  }
  if (status >= 400 && status < 500) return { kind: 'refused', error: readUpstreamError(status, body) }
  return { kind: 'broken', status }
}

function lossOf(cause: unknown, status: number): ReadOutcome {
  const tooLarge = cause instanceof errors.ResponseExceededMaxSizeError
  return status === 0 && !tooLarge
    ? { kind: 'unavailable', reason: 'notConnected', retryAfterMs: undefined }
    : { kind: 'broken', status }
}
