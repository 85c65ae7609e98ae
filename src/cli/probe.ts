import { get as getHttp } from 'node:http'
import { get as getHttps } from 'node:https'
import { TLSSocket } from 'node:tls'

/** What a plain GET of an address shows. */
interface Reached {
  readonly status: number
  /** The clock of the service minus that of this machine, by its Date field, which has whole seconds; undefined: it sent none. */
  readonly aheadMs: number | undefined
  /** The end of the certificate; undefined: without TLS. */
  readonly certificateEndMs: number | undefined
}

const TIMEOUT_MS = 5_000

/** Calls an address without credentials. Rejects with an error that has a `code`. */
export function probe(url: URL): Promise<Reached> {
  const get = url.protocol === 'https:' ? getHttps : getHttp
  return new Promise((resolve, reject) => {
    const startMs = Date.now()
    get(url, { agent: false, signal: AbortSignal.timeout(TIMEOUT_MS) }, (reply) => {
      const { socket, headers, statusCode = 0 } = reply
      const dateMs = Date.parse(headers.date ?? '')
      resolve({
        status: statusCode,
        // Half a second is what the field leaves out on average.
        aheadMs: Number.isNaN(dateMs) ? undefined : dateMs + 500 - (startMs + Date.now()) / 2,
        certificateEndMs:
          socket instanceof TLSSocket ? Date.parse(socket.getPeerCertificate().valid_to) : undefined,
      })
      reply.destroy()
    }).on('error', reject)
  })
}
