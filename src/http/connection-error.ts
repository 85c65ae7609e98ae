const headTooLarge = [
  'the head of its answer is larger than is read',
  'Ask the operator of the service to send fewer or smaller header fields.',
] as const

/** The reason for each error code, and a remedy for the errors that checking the address does not solve. */
const causes: Readonly<Record<string, readonly [why: string, remedy?: string]>> = {
  ECONNREFUSED: ['nothing listens there'],
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
    'a header field of the request, such as that of a key or token, has a character that HTTP cannot carry',
    'Check the key and the token.',
  ],
  EPROTO: [
    'the server does not use TLS, or no version that this program supports',
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

/** Returns true for the code of an untrusted certificate or a failed TLS handshake. */
export const isCertificate = (code: string): boolean =>
  /CERT|SELF_SIGNED|^UNABLE_TO_VERIFY|^ERR_(?:TLS|SSL)/.test(code)

/** Returns a clause with the error code. */
export function describeConnection(cause: unknown): string {
  const code = connectionCode(cause)
  const [known] = causes[code] ?? [isCertificate(code) ? 'its certificate is not trusted' : undefined]
  return known === undefined ? code : `${known} (${code})`
}

const remedies = {
  untrusted: 'Set NODE_EXTRA_CA_CERTS to the certificate of its authority, or name another address.',
  unreachable: 'Check the address, the firewall and the proxy, and whether the service runs.',
}

/** Returns what to do about a connection error. `own` replaces the texts for untrusted certificates and unreachable services. */
export function remedyOf(cause: unknown, own: typeof remedies = remedies): string {
  const code = connectionCode(cause)
  const [, remedy] = causes[code] ?? []
  return remedy ?? (isCertificate(code) ? own.untrusted : own.unreachable)
}

/** Returns the code of a connection error, or the name of an error without a code. */
export function connectionCode(cause: unknown): string {
  if (!(cause instanceof Error)) return 'unknown cause'
  // The error of a host with several addresses contains one error for each address.
  const [first] = cause instanceof AggregateError ? (cause.errors as unknown[]) : []
  return 'code' in cause ? String(cause.code) : first === undefined ? cause.name : connectionCode(first)
}
