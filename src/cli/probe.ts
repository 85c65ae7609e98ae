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

/** Why an address was not reached, and what to do where that is not to check the address. */
const causes: Readonly<Record<string, readonly [why: string, remedy?: string]>> = {
  ECONNREFUSED: ['nothing listens there'],
  ENOTFOUND: ['the name of the host is not known'],
  EAI_AGAIN: ['the name of the host cannot be looked up now'],
  EHOSTUNREACH: ['there is no way to the host'],
  ENETUNREACH: ['there is no way to the network'],
  ABORT_ERR: ['no answer came in 5 s'],
  ETIMEDOUT: ['no answer came in time'],
  UND_ERR_CONNECT_TIMEOUT: ['no connection came about in time'],
  ECONNRESET: ['the connection was closed without an answer'],
  EPROTO: [
    'what answers there speaks no TLS, or none that this program speaks',
    'Check the port, and whether the address begins with http: rather than https:.',
  ],
  CERT_HAS_EXPIRED: [
    'its certificate has expired',
    'Have its operator renew the certificate, if the clock of this machine is right.',
  ],
  CERT_NOT_YET_VALID: [
    'its certificate is not valid yet',
    'Check the clock of this machine, else tell the operator of the service.',
  ],
  ERR_TLS_CERT_ALTNAME_INVALID: [
    'its certificate is for another host',
    'Use the name that the certificate is for in the address, or have its operator replace it.',
  ],
}

/** True for a certificate that is not trusted, and for a handshake that failed. */
export const isCertificate = (code: string): boolean =>
  /CERT|SELF_SIGNED|^UNABLE_TO_VERIFY|^ERR_(?:TLS|SSL)/.test(code)

/** Why an address was not reached, as a clause with the code of the error. */
export function describeConnection(cause: unknown): string {
  const code = codeOf(cause)
  const [known] = causes[code] ?? [isCertificate(code) ? 'its certificate is not trusted' : undefined]
  return known === undefined ? code : `${known} (${code})`
}

/** What to do about it. */
export function remedyOf(cause: unknown): string {
  const code = codeOf(cause)
  const [, remedy] = causes[code] ?? []
  if (remedy !== undefined) return remedy
  return isCertificate(code)
    ? 'Set NODE_EXTRA_CA_CERTS to the certificate of its authority, or name another address.'
    : 'Check the address, the firewall and the proxy, and whether the service runs.'
}

function codeOf(cause: unknown): string {
  if (!(cause instanceof Error)) return 'unknown cause'
  // A host with several addresses.
  const [first] = cause instanceof AggregateError ? (cause.errors as unknown[]) : []
  return 'code' in cause ? String(cause.code) : first === undefined ? cause.name : codeOf(first)
}
