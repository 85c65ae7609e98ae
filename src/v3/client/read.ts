import { errors } from 'undici'

import { AdapterError } from '../../errors.ts'
import {
  CallGroup,
  countNodes,
  MAX_NODES_AT_ONCE,
  MAX_PAGE_NODES,
  createConnections,
  parseJson,
  type QueueKey,
  type Refusal,
  sendCall,
} from '../../upstream/index.ts'
import { isRefusal, readUnavailable, readUpstreamError, type UpstreamError } from '../outcome.ts'
import type { V3ClientOptions, V3Credentials } from './post.ts'

/** Requests V3 pages of V2's page size (OData protocol 8.2.8.5). A larger page would have to be read again for the next page of V2. */
const PREFERENCE = 'odata.maxpagesize=1000'

/** Maximum size of a reply in bytes. A page of 1,000 records has about half a MiB, so a reply above this limit is not a page. */
const MAX_PAGE_BYTES = 4_194_304

/** Maximum size of a page in bytes with `wholePages`, for a program that serves no clients while it parses the page. */
const MAX_WHOLE_BYTES = 16_777_216

/** Replies above this size are joined and parsed in a separate turn of the event loop. */
const LARGE_BYTES = 65_536

/** Matches a `Link` header field that points to a next page (RFC 8288 3.3). */
const NEXT_RELATION = /;\s{0,16}rel\s{0,16}=\s{0,16}"?(?:[^",;]{0,200}\s)?next\b/i

export type ReadOutcome =
  | { readonly kind: 'read'; readonly json: unknown }
  | { readonly kind: 'refused'; readonly error: UpstreamError }
  /** No reply arrived, or the service asked to try again later (429, 503, 408). A GET may be repeated. */
  | {
      readonly kind: 'unavailable'
      readonly reason: 'notConnected' | 'throttled' | 'unavailable'
      readonly retryAfterMs: number | undefined
    }
  /** The reply cannot be used: it is cut off, not JSON, a redirect or a server error. */
  | { readonly kind: 'broken'; readonly status: number }
  /** The whole reply did not arrive in time. */
  | { readonly kind: 'overdue' }
  /** No connection became free for this owner in time. Nothing was sent. */
  | { readonly kind: 'busy' }

/** Reads from one V3 upstream. Owners share its connections fairly. */
export interface V3Reader {
  /**
   * Sends a GET below `/Attendance/V3/`. `resource` is an entity set or one of its entities; `query` is raw and without `?`. `timeoutMs`
   * includes the wait for a connection. Rejects only if `signal` aborts.
   */
  get(
    resource: string,
    query: string,
    credentials: V3Credentials,
    signal: AbortSignal | undefined,
    timeoutMs: number,
    queueKey?: QueueKey,
  ): Promise<ReadOutcome>
  held(): number
  close(): Promise<void>
}

interface V3ReaderOptions extends V3ClientOptions {
  /** The path of the entity sets below the base address. Default: `/Attendance/V3/`. */
  readonly below?: string
  /** True to parse pages of up to 16 MiB in one turn, with any number of values, for a program without waiting clients. Default: false. */
  readonly wholePages?: boolean
  /** Maximum wait for a connection in ms. Default: 10,000. */
  readonly acquireMs?: number | undefined
  readonly onRefusal?: (reason: Refusal) => void
}

/** Creates a reader with connections of its own, so that long reads do not delay writes. */
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
          ...['accept', 'application/json', 'odata-maxversion', '4.0', 'prefer', PREFERENCE],
          ...['authorization', credentials.authorization],
          ...['ocp-apim-subscription-key', credentials.subscriptionKey],
        ],
      }
      const wait = { queueKey, waitMs: timeoutMs, signal: signal && (() => signal) }
      const { failure, status, fields, body } = await sendCall(connections, request, wait, {
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
      // Refuses a page whose `Link` field points to more rows. The reader does not follow this field, so the result would be incomplete.
      if (NEXT_RELATION.test(fields.all('link').join())) return { kind: 'broken', status }
      if (status >= 200 && status < 300) return parse(status, bytes)
      return toFailure(status, bytes.toString('utf8'), fields.one('retry-after'), nowMs())
    },
    held: () => connections.held(),
    close: () => connections.close(),
  }
}

function toFailure(status: number, body: string, retryAfter: string | undefined, nowMs: number): ReadOutcome {
  const unavailable = readUnavailable(status, body, retryAfter, nowMs)
  if (unavailable !== undefined) return { kind: 'unavailable', ...unavailable }
  if (isRefusal(status)) return { kind: 'refused', error: readUpstreamError(status, body) }
  return { kind: 'broken', status }
}

function lossOf(cause: Error, status: number): ReadOutcome {
  if (cause instanceof AdapterError) return { kind: cause.code === 'ADP_OVERLOADED' ? 'busy' : 'overdue' }
  const tooLarge = cause instanceof errors.ResponseExceededMaxSizeError
  return status === 0 && !tooLarge
    ? { kind: 'unavailable', reason: 'notConnected', retryAfterMs: undefined }
    : { kind: 'broken', status }
}

/** Approximate number of bytes that are parsed at once. V8 puts the values of text over 100 KB into its rarely collected old generation. */
const PIECE_BYTES = 65_536
/** Approximate number of JSON values that are parsed in one turn of the event loop if a page is large. */
const NODES_OF_TURN = 8_192
const ROWS_START = Buffer.from('"value":[')
const ROWS_END = Buffer.from('}]')
const BETWEEN_ROWS = Buffer.from('},{"')

/**
 * Parses the JSON of a reply to a read. Returns `undefined` if the text is not JSON, or has more values than any page. A page with many
 * values is cut between its rows and parsed in several turns of the event loop, if `later` provides these turns and the rows can be
 * recognised.
 */
export async function parsePage(body: Buffer, later?: (act: () => void) => void): Promise<unknown> {
  if (body.length <= PIECE_BYTES) return parseJson(body.toString('utf8'))
  const isSmall = hasFewNodes(body)
  if (!isSmall && countNodes(body.toString('latin1'), MAX_PAGE_NODES) > MAX_PAGE_NODES) return undefined
  const page = await parseInPieces(body, isSmall ? undefined : later)
  return page ?? parseJson(body.toString('utf8'), MAX_NODES_AT_ONCE)
}

/**
 * Parses compact JSON whose member `value` is a list of rows, in pieces. Returns `undefined` if the text cannot be cut. A cut is only a
 * guess and may lie inside a string or a row, but then at least one of the two pieces is not a list of JSON values, and parsing fails. If
 * both pieces are lists of values, the whole text is the list of their values.
 */
async function parseInPieces(bytes: Buffer, later?: (act: () => void) => void): Promise<unknown> {
  const start = bytes.indexOf(ROWS_START) + ROWS_START.length
  const end = bytes.lastIndexOf(ROWS_END) + 1
  if (start < ROWS_START.length || end <= start) return undefined
  const tail = bytes.toString('utf8', end)
  // Gives up if a member after the rows may also be named `value`, perhaps with escapes, because it would replace the rows.
  if (tail.includes('"value"') || tail.includes('\\')) return undefined
  const envelope = parseJson(bytes.toString('utf8', 0, start) + tail, MAX_NODES_AT_ONCE)
  if (typeof envelope !== 'object' || envelope === null) return undefined
  if (!('value' in envelope) || !isEmptyList(envelope.value)) return undefined
  const rows: unknown[] = []
  let nodesOfTurn = 0
  for (let from = start, to = end; from < end; from = to + 1) {
    const cut = bytes.indexOf(BETWEEN_ROWS, from + PIECE_BYTES)
    to = cut === -1 || cut >= end ? end : cut + 1
    const text = `[${bytes.toString('utf8', from, to)}]`
    if (later !== undefined) {
      nodesOfTurn += countNodes(text, NODES_OF_TURN)
      if (nodesOfTurn > NODES_OF_TURN) {
        await new Promise<void>(later)
        nodesOfTurn = 0
      }
    }
    const piece = parseJson(text, MAX_NODES_AT_ONCE)
    if (!Array.isArray(piece)) return undefined
    for (const row of piece) rows.push(row)
  }
  return { ...envelope, value: rows }
}

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0

/** Maps a byte to 1 if it may open a list or an object, or may be a comma before a value. */
const NODE_BYTES = new Uint8Array(256)
for (const byte of Buffer.from(',[{')) NODE_BYTES[byte] = 1

/**
 * Returns true if a text has few opening brackets and commas, including those in strings. The loop has no branches and is therefore fast,
 * because every large page is scanned.
 */
function hasFewNodes(bytes: Buffer): boolean {
  let nodes = 0
  for (let at = 0; at < bytes.length; at += 1) nodes += NODE_BYTES[bytes[at] ?? 0] ?? 0
  return nodes <= MAX_NODES_AT_ONCE
}
