import { get as getHttp } from 'node:http'
import { get as getHttps } from 'node:https'
import { TLSSocket } from 'node:tls'

interface ProbeResult {
  readonly status: number
  /** The time of the server minus the time of this machine, or `undefined` if the server sent no Date field. */
  readonly aheadMs: number | undefined
  /** The time at which the certificate expires, or `undefined` without TLS. */
  readonly certificateEndMs: number | undefined
}

const TIMEOUT_MS = 5_000

/** Calls an address without credentials. Rejects with an error that has a `code` if the server cannot be reached. */
export function probe(url: URL): Promise<ProbeResult> {
  const get = url.protocol === 'https:' ? getHttps : getHttp
  return new Promise((resolve, reject) => {
    const startMs = Date.now()
    get(url, { agent: false, signal: AbortSignal.timeout(TIMEOUT_MS) }, (reply) => {
      const { socket, headers, statusCode = 0 } = reply
      const dateMs = Date.parse(headers.date ?? '')
      resolve({
        status: statusCode,
        // The Date field has no fraction of a second, so the server is half a second later on average.
        aheadMs: Number.isNaN(dateMs) ? undefined : dateMs + 500 - (startMs + Date.now()) / 2,
        certificateEndMs:
          socket instanceof TLSSocket ? Date.parse(socket.getPeerCertificate().valid_to) : undefined,
      })
      reply.destroy()
    }).on('error', reject)
  })
}
