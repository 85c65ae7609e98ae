import { Agent, type Dispatcher, request } from 'undici'

import { Pieces } from '../http/body.ts'
import { toClientOptions, type UpstreamTimeouts } from './connections.ts'
import { ReplyFields } from './reply-fields.ts'
import { MAX_RECORD_NODES, parseJson } from './reply-json.ts'
import type { UpstreamRoute } from './route.ts'

const MAX_JSON_BYTES = 1_048_576

interface WholeRequest {
  readonly method?: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

/** A whole reply. Its body is `undefined` if it exceeds the maximum size. */
interface FetchedReply {
  readonly status: number
  readonly contentType: string | undefined
  readonly body: Buffer | undefined
}

/**
 * Sends a request and reads the whole reply. Rejects if the reply is not complete within `timeoutMs`. Uses `dispatcher`, because other code
 * may replace undici's global dispatcher.
 */
async function fetchWhole(
  dispatcher: Dispatcher,
  url: URL,
  options: WholeRequest,
  timeoutMs: number,
  maxBytes: number,
): Promise<FetchedReply> {
  const signal = AbortSignal.timeout(Math.max(1, Math.ceil(timeoutMs)))
  const {
    statusCode: status,
    headers,
    body,
  } = await request(url, {
    ...{ ...options, dispatcher, signal },
    responseHeaders: 'raw',
  })
  const contentType = new ReplyFields(headers).one('content-type')
  const pieces = new Pieces()
  for await (const chunk of body as AsyncIterable<Buffer>) {
    if (pieces.size + chunk.length > maxBytes) return { status, contentType, body: undefined }
    pieces.add(chunk)
  }
  return { status, contentType, body: pieces.join() }
}

/**
 * Sends one request over a connection of its own, for rare calls. `json` is `undefined` if the body exceeds 1 MiB or `parseJson` rejects
 * it.
 */
export async function fetchJson(
  url: URL,
  options: WholeRequest,
  timeoutMs: number,
  route?: UpstreamRoute,
): Promise<{ readonly status: number; readonly json: unknown }> {
  const agent = new Agent(toClientOptions({ connectMs: timeoutMs, headersMs: timeoutMs }, route))
  try {
    const { status, body } = await fetchWhole(agent, url, options, timeoutMs, MAX_JSON_BYTES)
    return { status, json: parseJson(body?.toString('utf8') ?? '', MAX_RECORD_NODES) }
  } finally {
    await agent.destroy()
  }
}

export interface WholeReader {
  /** Returns the reply, or `undefined` if the whole reply did not arrive in time or was too large. Never rejects. */
  get(
    url: URL,
    headers: Readonly<Record<string, string>>,
    timeoutMs: number,
  ): Promise<(FetchedReply & { readonly body: Buffer }) | undefined>
  close(): Promise<void>
}

/** Creates a dispatcher that opens at most `connections` connections to each origin. */
export const createReaderConnections = (
  connections: number,
  timeouts: UpstreamTimeouts,
  route?: UpstreamRoute,
): Dispatcher => new Agent({ connections, ...toClientOptions(timeouts, route) })

/** Creates a reader over `dispatcher`. Closing the reader also closes the dispatcher. */
export function createWholeReader(dispatcher: Dispatcher, maxBytes: number): WholeReader {
  return {
    get: async (url, headers, timeoutMs) => {
      try {
        const reply = await fetchWhole(dispatcher, url, { headers }, timeoutMs, maxBytes)
        return reply.body === undefined ? undefined : { ...reply, body: reply.body }
      } catch {
        // Callers treat a failed read like a missing reply.
        return undefined
      }
    },
    close: () => dispatcher.destroy(),
  }
}
