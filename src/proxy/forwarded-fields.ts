import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { isIP } from 'node:net'

import { AdapterError } from '../errors.ts'
import { type AddressList, plainAddress } from '../http/address.ts'
import type { ReplyHead } from '../upstream/index.ts'
import type { V3Credentials } from '../v3/index.ts'

/** Hop-by-hop header fields (RFC 9110 7.6.1), in lower case. `Connection` may name further fields. */
const hopByHopHeaders: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Maximum number of options in `Connection`. Clients name two or three, and each option is compared with every field. */
const MAX_CONNECTION_OPTIONS = 100

/** Checks the options in `Connection`. Throws `ADP_HEADER` if there are more than any client needs. */
export function checkConnectionOptions({ headers }: Pick<IncomingMessage, 'headers'>): void {
  const options = headers.connection?.split(',', MAX_CONNECTION_OPTIONS + 1) ?? []
  if (options.length > MAX_CONNECTION_OPTIONS)
    throw new AdapterError(
      'ADP_HEADER',
      `The header Connection names more than ${MAX_CONNECTION_OPTIONS} options. Nothing was sent. Name only the fields of this connection.`,
    )
}

/** Returns the end-to-end fields as alternating names and values. Fields in `kept` are included even if `Connection` names them. */
function endToEndFields(raw: readonly string[], kept: ReadonlySet<string> = NONE): string[] {
  // Fields that `Connection` names are hop-by-hop fields too (RFC 9110 7.6.1).
  const named = new Set<string>()
  for (let at = 0; at + 1 < raw.length; at += 2) {
    if (raw[at]?.toLowerCase() !== 'connection') continue
    for (const name of (raw[at + 1] ?? '').split(',')) named.add(name.trim().toLowerCase())
  }
  return filterFields(raw, (name) => !hopByHopHeaders.has(name) && (!named.has(name) || kept.has(name)))
}

const NONE: ReadonlySet<string> = new Set()

/** Matches fields that name the client of a request, its address, or the proxies that the request passed. */
const FORWARDING =
  /^(?:(?:x-)?forwarded(?:-.*)?|via|x-real-ip|(?:x|true|cf|fastly|x-cluster)-(?:client|connecting)-ip|x-envoy-external-address|x-azure-.*ip)$/
/** Matches fields that make a server use another method or path than the request line has. */
const OVERRIDE =
  /^(?:x-(?:http-)?method(?:-override)?|x-original-.*|x-rewrite-.*|x-envoy-original-path|(?:x-|x-waws-)unencoded-url)$/

/**
 * Matches fields by which a gateway tells its service who the caller is and how the request was routed, or by which a caller asks for
 * internals of the gateway. The adapter never forwards these fields from a client to V3. V2 still gets them, as it did before the adapter
 * was installed.
 */
const OF_GATEWAYS =
  /^(?:client-ip|x-proxyuser-ip|x-ms-(?:client-principal|token).*|x-arr-.*|front-end-https|x-(?:url-)?scheme|(?:x-)?remote-user|ocp-apim-trace)$/

const REMOVED = new RegExp(`${FORWARDING.source}|${OVERRIDE.source}`)

/** Returns a name in lower case with hyphens, because some servers treat `X_Forwarded_For` and `X-Forwarded-For` as one field. */
function plainName(name: string): string {
  const lower = name.toLowerCase()
  return lower.includes('_') ? lower.replaceAll('_', '-') : lower
}

export function isForwarded(headers: IncomingHttpHeaders): boolean {
  return Object.keys(headers).some((name) => FORWARDING.test(plainName(name)))
}

/**
 * Decides which forwarding fields are believed: those of a peer in `trustedProxies`, unless `publicUrl` sets the address that clients call.
 */
interface ForwardingTrust {
  readonly trustedProxies: AddressList
  readonly publicUrl?: URL | undefined
}

/** Matches a path prefix that a proxy removes from the path. Only plain segments are accepted, because the prefix becomes part of links. */
const PREFIX = /^(?:\/(?!\.)[\w.~!$&'()*+=:@%-]{1,128}){1,8}$/

/**
 * Replaces the forwarding fields of a request in place by the adapter's own: `X-Forwarded-For`, `X-Forwarded-Proto`, `X-Forwarded-Host`
 * and, for links, `X-Forwarded-Prefix`. Removes all other forwarding fields, and all fields that override the method or the path. Only a
 * peer in `trustedProxies` may set the scheme, the prefix and the earlier addresses. `publicUrl` overrides the scheme, the host and the
 * prefix.
 */
export function replaceForwarding(
  request: IncomingMessage,
  { trustedProxies: trusted, publicUrl }: ForwardingTrust,
): void {
  const { headers, socket } = request
  const peer = plainAddress(socket.remoteAddress ?? '')
  const isTrusted = trusted.has(peer)
  const claimed = isTrusted ? itemsOf(headers['x-forwarded-prefix']).at(-1) : undefined
  const prefix = (publicUrl?.pathname ?? claimed ?? '').replace(/\/$/, '')
  const heard = isTrusted ? itemsOf(headers['x-forwarded-proto']).at(-1)?.toLowerCase() : undefined
  const scheme = heard ?? ('encrypted' in socket && socket.encrypted === true ? 'https' : 'http')
  const hops = isTrusted ? trustedHops(itemsOf(headers['x-forwarded-for']), trusted) : []
  for (const name of Object.keys(headers)) {
    if (REMOVED.test(plainName(name))) Reflect.deleteProperty(headers, name)
  }
  headers['x-forwarded-for'] =
    hops.length === 0 ? peer : [...hops, peer].filter((hop) => hop !== '').join(', ')
  headers['x-forwarded-proto'] = (publicUrl?.protocol ?? `${scheme}:`) === 'https:' ? 'https' : 'http'
  headers['x-forwarded-host'] = publicUrl?.host ?? headers.host ?? ''
  if (prefix !== '' && (publicUrl !== undefined || PREFIX.test(prefix)))
    headers['x-forwarded-prefix'] = prefix
}

/** Returns the last hop that is not a trusted proxy, and the hops after it. That hop may have invented all earlier hops. */
function trustedHops(hops: readonly string[], trusted: AddressList): readonly string[] {
  const client = hops.findLastIndex((hop) => !trusted.has(hop))
  return hops.slice(Math.max(client, 0)).filter((hop) => isIP(hop) !== 0)
}

function itemsOf(field: string | string[] | undefined): string[] {
  const items = [field ?? []].flat().flatMap((value) => value.split(','))
  return items.map((item) => item.trim()).filter((item) => item !== '')
}

/**
 * The fields that are forwarded even if the client names them in `Connection`. Without `Content-Length`, the upstream would read the body
 * as the next request on the connection. Without the credentials, the request would be denied.
 */
const KEPT: ReadonlySet<string> = new Set(['content-length', 'authorization', 'ocp-apim-subscription-key'])
/** The forwarding fields that `replaceForwarding` sets. A client's `REPLACED` fields are not forwarded. Node.js itself answers `Expect`. */
const FORWARDED = ['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host'] as const
const REPLACED: ReadonlySet<string> = new Set([
  ...FORWARDED,
  ...['x-forwarded-port', 'x-forwarded-prefix', 'host', 'expect'],
])
const CREDENTIALS: ReadonlySet<string> = new Set(['authorization', 'ocp-apim-subscription-key'])
/**
 * The fields of which only the first occurrence is forwarded. The adapter checks the first value, but a service might use the last value,
 * which may name another client.
 */
const ONCE: ReadonlySet<string> = new Set(['authorization', 'content-type'])

/**
 * Returns the fields of a request for the next hop (RFC 9110 7.6.1), in the client's order and case. The connection sets `Host`.
 * `credentials` replace the client's own. `identity` asks for a body without content encoding. `added` fields replace fields of the same
 * names.
 */
export function toUpstreamFields(
  request: IncomingMessage,
  {
    credentials,
    identity,
    added = [],
  }: {
    readonly credentials: V3Credentials | undefined
    readonly identity: boolean
    readonly added?: readonly string[] | undefined
  },
): string[] {
  const { rawHeaders, headers } = request
  const once = new Set(ONCE)
  const seen = (name: string): boolean => ONCE.has(name) && !once.delete(name)
  const fields = filterFields(endToEndFields(rawHeaders, KEPT), (name) => {
    if (seen(name)) return false
    // `replaceForwarding` removed fields from the parsed headers, but not from the raw headers.
    if (headers[name] === undefined || REPLACED.has(name)) return false
    if ((identity && name === 'accept-encoding') || added.includes(name)) return false
    return credentials === undefined || !(CREDENTIALS.has(name) || isForeignToV3(name))
  })
  for (const name of FORWARDED) {
    const value = headers[name]
    if (typeof value === 'string') fields.push(name, value)
  }
  fields.push('x-forwarded-port', portOf(request), ...added)
  if (identity) fields.push('accept-encoding', 'identity')
  if (credentials !== undefined) {
    fields.push('ocp-apim-subscription-key', credentials.subscriptionKey)
    fields.push('authorization', credentials.authorization)
  }
  return fields
}

/** Returns true for a field that only gateways set, and for another spelling of a field that the adapter sets itself. */
function isForeignToV3(name: string): boolean {
  const plain = plainName(name)
  if (OF_GATEWAYS.test(plain)) return true
  return plain !== name && [CREDENTIALS, REPLACED, KEPT, ONCE, hopByHopHeaders].some((set) => set.has(plain))
}

function portOf({ headers }: IncomingMessage): string {
  const port = /:(\d+)$/.exec([headers['x-forwarded-host'] ?? headers.host].join())?.[1]
  return port ?? (headers['x-forwarded-proto'] === 'https' ? '443' : '80')
}

/** Returns the fields of a reply for the client, without fields that contain one of the `withheld` credentials. */
export function toClientFields(head: ReplyHead, withheld: readonly string[]): string[] {
  const own = endToEndFields(head.fields.list())
  return withheld.length === 0
    ? own
    : filterFields(own, (name, value) => !holdsCredential(`${name}: ${value}`, withheld))
}

/** Filters alternating names and values. `passes` receives each name in lower case. */
function filterFields(raw: readonly string[], passes: (name: string, value: string) => boolean): string[] {
  const fields: string[] = []
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [name = '', value = ''] = [raw[at], raw[at + 1]]
    if (passes(name.toLowerCase(), value)) fields.push(name, value)
  }
  return fields
}

const BASE64_RUN = /[A-Za-z0-9+/_-]{4,}/g
/** The number of layers that are searched for a credential: the text itself, and the text decoded once and twice. */
const MAX_LAYERS = 3

/** Returns those credentials of a call that the client did not send itself. The reply must not reveal them. */
export function addedCredentials(sent: V3Credentials, client: V3Credentials): string[] {
  const token = (authorization: string): string => authorization.replace(/^bearer +/i, '')
  const added: string[] = []
  if (sent.subscriptionKey !== client.subscriptionKey) added.push(sent.subscriptionKey)
  if (token(sent.authorization) !== token(client.authorization)) added.push(token(sent.authorization))
  return added.filter((credential) => credential !== '')
}

/** Returns true if a text contains one of the credentials: as plain text, percent-encoded or in base64. */
export function holdsCredential(text: string, credentials: readonly string[]): boolean {
  if (credentials.length === 0) return false
  const wanted = credentials.map((credential) => credential.toLowerCase())
  let layer = [text]
  for (let depth = 0; depth < MAX_LAYERS && layer.length > 0; depth += 1) {
    if (layer.some((one) => wanted.some((credential) => one.toLowerCase().includes(credential)))) return true
    layer = layer.flatMap(decodings)
  }
  return false
}

/** Returns the possible decodings of a text that differ from the text itself. */
function decodings(text: string): string[] {
  const texts: string[] = []
  if (text.includes('%'))
    texts.push(
      text.replace(/%([0-9a-f]{2})/gi, (_all, hex: string) => String.fromCharCode(parseInt(hex, 16))),
    )
  if (text.includes('\\')) texts.push(text.replaceAll('\\', ''))
  for (const [run] of text.matchAll(BASE64_RUN)) {
    // Decodes from each of the four offsets, because characters before the credential may shift its groups of four.
    for (let shift = 0; shift < 4; shift += 1)
      texts.push(Buffer.from(run.slice(shift), 'base64').toString('latin1'))
  }
  return texts
}
