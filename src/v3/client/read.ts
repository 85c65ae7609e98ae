import { errors } from 'undici'

import { AdapterError } from '../../errors.ts'
import { CallGroup, createConnections, type QueueKey, type Refusal, sendCall } from '../../upstream/index.ts'
import { parseJson, readUnavailable, readUpstreamError, type UpstreamError } from '../outcome.ts'
import { parsePage } from './parse-page.ts'
import type { V3ClientOptions, V3Credentials } from './post.ts'

/** A page of 1000 records is about half of one MiB; anything larger is not a page. */
const MAX_PAGE_BYTES = 4_194_304

/** The largest page of a caller that has no other work to do meanwhile. */
const MAX_WHOLE_BYTES = 16_777_216

/** A larger reply is joined and parsed in a turn of the event loop of its own. */
const LARGE_BYTES = 65_536

/** The result of one GET. */
export type ReadOutcome =
  | { readonly kind: 'read'; readonly json: unknown }
  | { readonly kind: 'refused'; readonly error: UpstreamError }
  /** No reply, or a request to retry (429; 503, 408); a GET may be repeated. */
  | {
      readonly kind: 'unavailable'
      readonly reason: 'notConnected' | 'throttled' | 'unavailable'
      readonly retryAfterMs: number | undefined
    }
  /** An answer that is none: cut off, not JSON, a redirect, a failure of the service. */
  | { readonly kind: 'broken'; readonly status: number }
  /** The time for it was over before it was whole. */
  | { readonly kind: 'overdue' }
  /** No connection became free for this owner in time; nothing was sent. */
  | { readonly kind: 'busy' }

/** The reads of one V3 upstream; its connections are divided between owners. */
export interface V3Reader {
  /**
   * GETs below `/Attendance/V3/`: `resource` is a set or an entity of one, `query` raw and without `?`. One page is
   * held at a time, so the caller's pace is V3's. It ends after `timeoutMs`, which includes the wait for a connection, however
   * the answer trickles in. Rejects only when `signal` aborts (undefined: it never does).
   */
  get(
    resource: string,
    query: string,
    credentials: V3Credentials,
    signal: AbortSignal | undefined,
    timeoutMs: number,
    queueKey?: QueueKey,
  ): Promise<ReadOutcome>
  /** Connections in use. */
  held(): number
  close(): Promise<void>
}

/** Where the sets are, and how pages are parsed. */
interface V3ReaderOptions extends V3ClientOptions {
  /** The path of the sets below the base address. Default `/Attendance/V3/`. */
  readonly below?: string
  /** Pages up to 16 MiB are parsed at once, whatever they hold: for a program without clients that wait. Default false. */
  readonly wholePages?: boolean
  /** Longest wait for a connection, ms. Default 10,000. */
  readonly acquireMs?: number
  /** Called where a read gets no connection. */
  readonly onRefusal?: (reason: Refusal) => void
}

/** Creates the reader over connections of its own: long reads must not delay writes. */
export function createV3Reader(options: V3ReaderOptions): V3Reader {
  const { baseUrl, nowMs, clock, onCall, trace, later, wholePages = false } = options
  const connections = createConnections(baseUrl.origin, options)
  const root = `${baseUrl.pathname.replace(/\/+$/, '')}${options.below ?? '/Attendance/V3/'}`
  const parse = async (status: number, body: Buffer): Promise<ReadOutcome> => {
    const json = wholePages ? parseJson(body.toString('utf8')) : await parsePage(body, later)
    return json === undefined ? { kind: 'broken', status } : { kind: 'read', json }
  }
  return {
    get: async (resource, query, credentials, signal, timeoutMs, queueKey) => {
      const request = {
        method: 'GET' as const,
        path: `${root}${resource}${query === '' ? '' : `?${query}`}`,
        headers: [
          ...['accept', 'application/json', 'authorization', credentials.authorization],
          ...['ocp-apim-subscription-key', credentials.subscriptionKey],
        ],
      }
      const wait = { queueKey, waitMs: timeoutMs, signal: signal && (() => signal) }
      const { failure, status, headers, body } = await sendCall(connections, request, wait, {
        clock,
        group: new CallGroup(clock, () => timeoutMs),
        maxBytes: wholePages ? MAX_WHOLE_BYTES : MAX_PAGE_BYTES,
        signal,
        onAnswered: onCall && ((own, durationMs) => onCall({ kind: 'read', status: own, durationMs })),
        trace: trace && (() => trace('read')),
      })
      signal?.throwIfAborted()
      if (failure !== undefined) return lossOf(failure, status)
      if (later !== undefined && body.size > LARGE_BYTES) await new Promise<void>(later)
      const bytes = body.join()
      if (status >= 200 && status < 300) return parse(status, bytes)
      return toFailure(status, bytes.toString('utf8'), headers['retry-after'], nowMs())
    },
    held: () => connections.held(),
    close: () => connections.close(),
  }
}

function toFailure(status: number, body: string, retryAfter: string | undefined, nowMs: number): ReadOutcome {
  const unavailable = readUnavailable(status, body, retryAfter, nowMs)
  if (unavailable !== undefined) return { kind: 'unavailable', ...unavailable }
  if (status >= 400 && status < 500) return { kind: 'refused', error: readUpstreamError(status, body) }
  return { kind: 'broken', status }
}

function lossOf(cause: Error, status: number): ReadOutcome {
  if (cause instanceof AdapterError) return { kind: cause.code === 'ADP_OVERLOADED' ? 'busy' : 'overdue' }
  const tooLarge = cause instanceof errors.ResponseExceededMaxSizeError
  return status === 0 && !tooLarge
    ? { kind: 'unavailable', reason: 'notConnected', retryAfterMs: undefined }
    : { kind: 'broken', status }
}
