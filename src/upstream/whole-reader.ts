import { Agent } from 'undici'

import type { Clock } from '../clock.ts'
import { collectReply } from './collect-reply.ts'
import { toClientOptions, type UpstreamTimeouts } from './connections.ts'

/** A reply that was read whole. */
export interface WholeReply {
  readonly status: number
  readonly contentType: string | undefined
  readonly body: Buffer
}

/** GETs of whole replies from any address, over connections of its own. */
export interface WholeReader {
  /** Undefined: no whole reply came in time, or it was larger than allowed. Never rejects. */
  get(url: URL, headers: Readonly<Record<string, string>>, timeoutMs: number): Promise<WholeReply | undefined>
  close(): Promise<void>
}

export interface WholeReaderOptions {
  /** To each address. */
  readonly connections: number
  readonly timeouts: UpstreamTimeouts
  readonly maxBytes: number
  readonly clock: Clock
}

/** Creates the reader; replies are asked for without an encoding. */
export function createWholeReader({
  connections,
  timeouts,
  maxBytes,
  clock,
}: WholeReaderOptions): WholeReader {
  const agent = new Agent({ connections, ...toClientOptions(timeouts) })
  return {
    get: async (url, headers, timeoutMs) => {
      const path = `${url.pathname}${url.search}`
      const request = { origin: url.origin, path, method: 'GET' as const, headers }
      const options = { maxBytes, clock, timeoutMs, signal: undefined, onStatus: () => undefined }
      try {
        const { status, headers: fields, body } = await collectReply(agent, request, options)
        return { status, contentType: fields['content-type'], body: body.join() }
      } catch {
        // The caller has other ways to find out, or counts the side as silent.
        return undefined
      }
    },
    close: () => agent.destroy(),
  }
}
