const headTooLarge = [
  'the header fields of the response are larger than this program accepts',
  'Ask the operator of the service to send fewer or smaller header fields.',
] as const

const noTls = [
  'the server does not use TLS, or uses a version of TLS that this program does not support',
  'Check the port, and whether the address begins with http: rather than https:.',
] as const

/** The reason for each error code, and a remedy if the general `remedies` do not fit. */
const causes: Readonly<Record<string, readonly [why: string, remedy?: string]>> = {
  ECONNREFUSED: ['no server listens at this address'],
  ENOTFOUND: ['the host name does not exist'],
  EAI_AGAIN: ['the host name cannot be resolved now'],
  EHOSTUNREACH: ['the host is unreachable'],
  ENETUNREACH: ['the network is unreachable'],
  ABORT_ERR: ['no response arrived within 5 s'],
  ETIMEDOUT: ['no response arrived in time'],
  UND_ERR_CONNECT_TIMEOUT: ['no connection was made in time'],
  ECONNRESET: ['the connection was closed without a response'],
  EMFILE: [
    'this process may open no more files and connections',
    'Raise the limit of open files (ulimit -n, LimitNOFILE).',
  ],
  UND_ERR_HEADERS_OVERFLOW: headTooLarge,
  HPE_HEADER_OVERFLOW: headTooLarge,
  UND_ERR_INVALID_ARG: [
    'a header field of the request, such as the key or the token, contains a character that HTTP cannot carry',
    'Check the key and the token.',
  ],
  EPROTO: noTls,
  ERR_SSL_WRONG_VERSION_NUMBER: noTls,
  CERT_HAS_EXPIRED: [
    'the certificate of the server has expired',
    'Check the clock of this machine. If the clock is right, ask the operator of the service to renew the certificate.',
  ],
  CERT_NOT_YET_VALID: [
    'the certificate of the server is not valid yet',
    'Check the clock of this machine. If the clock is right, tell the operator of the service.',
  ],
  ERR_TLS_CERT_ALTNAME_INVALID: [
    'the certificate of the server is for another host',
    'Use the host name of the certificate in the address, or ask the operator of the service to replace the certificate.',
  ],
}

/** The reasons and remedies if a server requires or refuses a client certificate. */
export const clientCertificate = {
  required: ['the server requires a client certificate', 'Set cert and key in upstreams.*.tls.'],
  refused: [
    'the server does not accept the client certificate',
    'Check cert in upstreams.*.tls, and ask the operator of the service which authority has to issue it.',
  ],
} as const

/**
 * The reasons for TLS alerts, by alert number (RFC 8446 6.2). The number is used because the error code of an alert differs between
 * versions of TLS.
 */
const alerts: Readonly<Record<string, readonly [why: string, remedy: string]>> = {
  40: [
    'the server refused the TLS handshake, as servers do that require a client certificate',
    'Set cert and key in upstreams.*.tls. If the service requires no client certificate, ask its operator which versions of TLS it supports.',
  ],
  42: clientCertificate.refused,
  43: clientCertificate.refused,
  44: clientCertificate.refused,
  45: clientCertificate.refused,
  46: clientCertificate.refused,
  48: clientCertificate.refused,
  116: clientCertificate.required,
}

function causeOf(cause: unknown): readonly [why: string, remedy?: string] | undefined {
  const [, alert = ''] = /SSL alert number (\d+)/.exec(cause instanceof Error ? cause.message : '') ?? []
  return alerts[alert] ?? causes[connectionCode(cause)]
}

/** Returns true for the code of an untrusted certificate or a failed TLS handshake. */
export const isCertificate = (code: string): boolean =>
  /CERT|SELF_SIGNED|^UNABLE_TO_VERIFY|^ERR_(?:TLS|SSL)/.test(code)

/** The error for an upstream connection that an outbound proxy did not open. The request was not sent. */
export class ProxyError extends Error {
  /** The error code of the connection to the proxy, or `PROXY_<status>` if the proxy answered with this status. */
  readonly code: string
  /** The address of the proxy without its credentials. */
  readonly proxy: string

  constructor({ origin }: URL, cause: unknown) {
    const what =
      typeof cause === 'number'
        ? `refused the connection (${cause})`
        : `cannot be reached: ${describeConnection(cause)}`
    super(`the proxy ${origin} ${what}`)
    this.name = 'ProxyError'
    this.code = typeof cause === 'number' ? `PROXY_${cause}` : connectionCode(cause)
    this.proxy = origin
  }
}

/** Describes a connection error as a clause with the error code, such as `no server listens at this address (ECONNREFUSED)`. */
export function describeConnection(cause: unknown): string {
  if (cause instanceof ProxyError) return cause.message
  const code = connectionCode(cause)
  const [known] = causeOf(cause) ?? [
    isCertificate(code) ? 'the certificate of the server is not trusted' : undefined,
  ]
  return known === undefined ? code : `${known} (${code})`
}

const remedies = {
  untrusted:
    'Set upstreams.*.tls.ca (or NODE_EXTRA_CA_CERTS) to the certificate of the authority that issued it, or use another address.',
  unreachable: 'Check the address, the firewall and the proxy, and whether the service runs.',
}

/** Returns the remedy for a connection error. `own` replaces the remedies for untrusted certificates and unreachable services. */
export function remedyOf(cause: unknown, own: typeof remedies = remedies): string {
  const code = connectionCode(cause)
  if (code === 'PROXY_407')
    return 'Add the user and the password to the address of the proxy: http://<user>:<password>@<host>:<port>.'
  if (cause instanceof ProxyError)
    return 'Check the address of the proxy (upstreams.*.proxy or HTTPS_PROXY), and whether the proxy permits connections to this host and port.'
  const [, remedy] = causeOf(cause) ?? []
  return remedy ?? (isCertificate(code) ? own.untrusted : own.unreachable)
}

/** Returns the code of a connection error, or the name of an error without a code. */
export function connectionCode(cause: unknown): string {
  if (!(cause instanceof Error)) return 'unknown cause'
  // A host with several addresses gives an error that contains one error for each address.
  const [first] = cause instanceof AggregateError ? (cause.errors as unknown[]) : []
  return 'code' in cause ? String(cause.code) : first === undefined ? cause.name : connectionCode(first)
}
