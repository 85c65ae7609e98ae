import { Agent, type Dispatcher, request } from 'undici'

import { Pieces } from '../http/body.ts'
import { toClientOptions, type UpstreamTimeouts } from './connections.ts'

/** Of a reply that is read as JSON. */
const MAX_JSON_BYTES = 1_048_576

interface WholeRequest {
  readonly method?: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** Default: undici's own. */
  readonly dispatcher?: Dispatcher
}

/** A reply; its body is undefined where it is larger than asked for. */
interface FetchedReply {
  readonly status: number
  readonly contentType: string | undefined
  readonly body: Buffer | undefined
}

/** Sends one request. Rejects where no whole reply comes in time. */
async function fetchWhole(
  url: URL,
  options: WholeRequest,
  timeoutMs: number,
  maxBytes: number,
): Promise<FetchedReply> {
  const signal = AbortSignal.timeout(Math.max(1, Math.ceil(timeoutMs)))
  const { statusCode: status, headers, body } = await request(url, { ...options, signal })
  const [contentType] = [headers['content-type']].flat()
  const pieces = new Pieces()
  for await (const chunk of body as AsyncIterable<Buffer>) {
    if (pieces.size + chunk.length > maxBytes) return { status, contentType, body: undefined }
    pieces.add(chunk)
  }
  return { status, contentType, body: pieces.join() }
}

/**
 * Sends one request, for calls that are rare: nothing is shared with others. `json` is undefined where the body is none, or is
 * larger than a mebibyte. Rejects where no whole reply comes in time.
 */
export async function fetchJson(
  url: URL,
  options: WholeRequest,
  timeoutMs: number,
): Promise<{ readonly status: number; readonly json: unknown }> {
  const { status, body } = await fetchWhole(url, options, timeoutMs, MAX_JSON_BYTES)
  try {
    return { status, json: JSON.parse(body?.toString('utf8') ?? '') as unknown }
  } catch {
    return { status, json: undefined } // the caller says what it means
  }
}

/** GETs JSON once; undefined: no whole reply came within this time. */
export async function getJson(
  url: URL,
  headers: Readonly<Record<string, string>>,
  timeoutMs: number,
): Promise<{ readonly status: number; readonly json: unknown } | undefined> {
  try {
    return await fetchJson(url, { headers: { accept: 'application/json', ...headers } }, timeoutMs)
  } catch {
    // The caller has other ways to find out, or gives up.
    return undefined
  }
}

/** GETs of whole replies from any address, over connections of its own. */
export interface WholeReader {
  /** Undefined: no whole reply came in time, or it was larger than allowed. Never rejects. */
  get(
    url: URL,
    headers: Readonly<Record<string, string>>,
    timeoutMs: number,
  ): Promise<(FetchedReply & { readonly body: Buffer }) | undefined>
  close(): Promise<void>
}

/** Creates the reader, with so many connections to each address; replies are asked for without an encoding. */
export function createWholeReader(
  connections: number,
  timeouts: UpstreamTimeouts,
  maxBytes: number,
): WholeReader {
  const dispatcher = new Agent({ connections, ...toClientOptions(timeouts) })
  return {
    get: async (url, headers, timeoutMs) => {
      try {
        const reply = await fetchWhole(url, { headers, dispatcher }, timeoutMs, maxBytes)
        return reply.body === undefined ? undefined : { ...reply, body: reply.body }
      } catch {
        // The caller has other ways to find out, or counts the side as silent.
        return undefined
      }
    },
    close: () => dispatcher.destroy(),
  }
}
