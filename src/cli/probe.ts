import { get as getHttp, type IncomingMessage } from 'node:http'
import { get as getHttps } from 'node:https'
import { TLSSocket } from 'node:tls'

import { createConnectionFor } from '../app/routes.ts'
import type { Config } from '../config/index.ts'

interface ProbeResult {
  readonly status: number
  /** The time of the server minus the time of this machine, or `undefined` if the server sent no Date field. */
  readonly aheadMs: number | undefined
  /** The time at which the certificate expires, or `undefined` without TLS. */
  readonly certificateEndMs: number | undefined
  /** The fault of the client certificate that the reply reports, or `undefined` if it reports none. */
  readonly certificateFault: 'required' | 'refused' | undefined
}

const TIMEOUT_MS = 5_000

/**
 * Calls an address with the TLS settings and proxy of an upstream, but without credentials. Rejects with an error that has a `code` if the
 * server cannot be reached.
 */
export async function probe(
  url: URL,
  config: Pick<Config, 'upstreams'>,
  side: 'v2' | 'v3',
): Promise<ProbeResult> {
  const get = url.protocol === 'https:' ? getHttps : getHttp
  const createConnection = createConnectionFor(config, side, url, TIMEOUT_MS)
  const startMs = Date.now()
  const reply = await new Promise<IncomingMessage>((resolve, reject) => {
    get(url, { createConnection, signal: AbortSignal.timeout(TIMEOUT_MS) }, resolve).on('error', reject)
  })
  const { socket, headers, statusCode: status = 0 } = reply
  const dateMs = Date.parse(headers.date ?? '')
  const certificateEndMs =
    socket instanceof TLSSocket ? Date.parse(socket.getPeerCertificate().valid_to) : undefined
  const answeredMs = Date.now()
  const text = status === 400 ? await readStart(reply) : ''
  reply.destroy()
  return {
    status,
    certificateEndMs,
    // The Date field has whole seconds, so the time of the server was half a second later on average.
    aheadMs: Number.isNaN(dateMs) ? undefined : dateMs + 500 - (startMs + answeredMs) / 2,
    certificateFault: certificateFaults.find(([, pattern]) => pattern.test(text))?.[0],
  }
}

/** The texts by which nginx, and gateways built on it, reject a client certificate with a reply of status 400 after the TLS handshake. */
const certificateFaults = [
  ['required', /no required ssl certificate/i],
  ['refused', /ssl certificate error/i],
] as const

async function readStart(reply: IncomingMessage): Promise<string> {
  for await (const chunk of reply as AsyncIterable<Buffer>) return chunk.toString()
  return ''
}
