import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { isIP } from 'node:net'

import { AdapterError } from '../errors.ts'
import { type AddressList, plainAddress } from '../http/address.ts'
import type { ReplyHead } from '../upstream/index.ts'
import type { V3Credentials } from '../v3/index.ts'

/** Header fields that end at each hop (RFC 9110 7.6.1), in lower case; `Connection` may name more. */
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

/** Clients name two or three; each is compared with every field. */
const MAX_CONNECTION_OPTIONS = 100

/** Refuses a request whose `Connection` names more options than any client needs. Error: `ADP_HEADER`. */
export function checkConnectionOptions({ headers }: Pick<IncomingMessage, 'headers'>): void {
  const options = headers.connection?.split(',', MAX_CONNECTION_OPTIONS + 1) ?? []
  if (options.length > MAX_CONNECTION_OPTIONS)
    throw new AdapterError(
      'ADP_HEADER',
      `The header Connection names more than ${MAX_CONNECTION_OPTIONS} options. Nothing was sent. Name the fields of this connection only.`,
    )
}

/**
 * The fields of a message that go on to the next hop, as they were written: name, value, name, value. Those in `kept` go on
 * although `Connection` names them.
 */
function endToEndFields(raw: readonly string[], kept: ReadonlySet<string> = NONE): string[] {
  // The names in `Connection` end at this hop too (RFC 9110 7.6.1).
  const named = new Set<string>()
  for (let at = 0; at + 1 < raw.length; at += 2) {
    if (raw[at]?.toLowerCase() !== 'connection') continue
    for (const name of (raw[at + 1] ?? '').split(',')) named.add(name.trim().toLowerCase())
  }
  return passing(raw, (name) => !hopByHopHeaders.has(name) && (!named.has(name) || kept.has(name)))
}

const NONE: ReadonlySet<string> = new Set()

/** Fields that name the client of a request, its address, or its hops. */
const FORWARDING =
  /^(?:(?:x-)?forwarded(?:-.*)?|via|x-real-ip|(?:x|true|cf|fastly|x-cluster)-(?:client|connecting)-ip|x-envoy-external-address|x-azure-.*ip)$/
/** Fields that make a server serve another method or path than those of the request line. */
const OVERRIDE =
  /^(?:x-(?:http-)?method(?:-override)?|x-original-.*|x-rewrite-.*|x-envoy-original-path|(?:x-|x-waws-)unencoded-url)$/

/**
 * Fields by which gateways tell a service behind them who calls, by which way, or what to show of themselves. V3 gets none of a client. V2
 * gets them at the stages at which it serves, as before the adapter.
 */
const OF_GATEWAYS =
  /^(?:client-ip|x-proxyuser-ip|x-ms-(?:client-principal|token).*|x-arr-.*|front-end-https|x-(?:url-)?scheme|(?:x-)?remote-user|ocp-apim-trace)$/

/** Fields that no request takes along: those about its way, and those that override its method or path. */
const REMOVED = new RegExp(`${FORWARDING.source}|${OVERRIDE.source}`)

/** Servers that hand headers on as variables read `X_Forwarded_For` and `X-Forwarded-For` as one field. */
function plainName(name: string): string {
  const lower = name.toLowerCase()
  return lower.includes('_') ? lower.replaceAll('_', '-') : lower
}

/** True for a request that a proxy has forwarded, as its added fields show. */
export function isForwarded(headers: IncomingHttpHeaders): boolean {
  return Object.keys(headers).some((name) => FORWARDING.test(plainName(name)))
}

/** Who is believed about the address that a client called, and that address where the configuration has it. */
interface ForwardingTrust {
  readonly trustedProxies: AddressList
  readonly publicUrl?: URL | undefined
}

/** A path before the adapter's own that a proxy takes off: plain segments. It becomes a part of links. */
const PREFIX = /^(?:\/(?!\.)[\w.~!$&'()*+=:@%-]{1,128}){1,8}$/

/**
 * Replaces the fields about the way of a request by the adapter's own, in place: `X-Forwarded-For`, `X-Forwarded-Proto`,
 * `X-Forwarded-Host` and, for links, `X-Forwarded-Prefix`. Every other field of that kind goes, and so does every field that overrides the
 * method or the path. Only a peer in `trustedProxies` is believed, about the scheme, the prefix, and the addresses before it. `publicUrl`
 * takes the place of scheme, host and prefix.
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
  const scheme = isTrusted ? itemsOf(headers['x-forwarded-proto']).at(-1)?.toLowerCase() : undefined
  const encrypted = 'encrypted' in socket && socket.encrypted === true
  const hops = isTrusted ? believed(itemsOf(headers['x-forwarded-for']), trusted) : []
  for (const name of Object.keys(headers)) {
    if (REMOVED.test(plainName(name))) Reflect.deleteProperty(headers, name)
  }
  headers['x-forwarded-for'] =
    hops.length === 0 ? peer : [...hops, peer].filter((hop) => hop !== '').join(', ')
  const isSecure = publicUrl === undefined ? scheme === 'https' || encrypted : publicUrl.protocol === 'https:'
  headers['x-forwarded-proto'] = isSecure ? 'https' : 'http'
  headers['x-forwarded-host'] = publicUrl?.host ?? headers.host ?? ''
  if (prefix !== '' && (publicUrl !== undefined || PREFIX.test(prefix)))
    headers['x-forwarded-prefix'] = prefix
}

/** The hops behind the first one that is not trusted, and that one: earlier hops are claims of that one. */
function believed(hops: readonly string[], trusted: AddressList): readonly string[] {
  const client = hops.findLastIndex((hop) => !trusted.has(hop))
  return hops.slice(Math.max(client, 0)).filter((hop) => isIP(hop) !== 0)
}

function itemsOf(field: string | string[] | undefined): string[] {
  const items = [field ?? []].flat().flatMap((value) => value.split(','))
  return items.map((item) => item.trim()).filter((item) => item !== '')
}

/**
 * What a client cannot have removed by naming it in `Connection`: without the framing, the body would be read as the next
 * request on the upstream's connection.
 */
const KEPT: ReadonlySet<string> = new Set(['content-length', 'authorization', 'ocp-apim-subscription-key'])
/** Set anew for the next hop; Node has answered `Expect`. `replaceForwarding` has set the forwarding fields. */
const FORWARDED = ['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host'] as const
const REPLACED: ReadonlySet<string> = new Set([
  ...FORWARDED,
  ...['x-forwarded-port', 'x-forwarded-prefix', 'host', 'expect'],
])
const CREDENTIALS: ReadonlySet<string> = new Set(['authorization', 'ocp-apim-subscription-key'])
/** Of these Node reads the first alone: a service that read the last would serve another client, or other records, than are known here. */
const ONCE: ReadonlySet<string> = new Set(['authorization', 'content-type'])

/**
 * The fields of a request for the next hop (RFC 9110 7.6.1), in the client's order and case; `Host` is left to the connection.
 * `credentials` take the place of the client's own; `identity`: ask for a body that is not encoded; `added` take the place of fields of the
 * same names.
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
  const fields = passing(endToEndFields(rawHeaders, KEPT), (name) => {
    if (seen(name)) return false
    // Fields that `replaceForwarding` has removed are not among the parsed ones any more.
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

/** True for a field of gateways, and for another spelling of a field that the adapter sets itself. */
function isForeignToV3(name: string): boolean {
  const plain = plainName(name)
  if (OF_GATEWAYS.test(plain)) return true
  return plain !== name && [CREDENTIALS, REPLACED, KEPT, ONCE, hopByHopHeaders].some((set) => set.has(plain))
}

/** The port that the client asked for. */
function portOf({ headers }: IncomingMessage): string {
  const port = /:(\d+)$/.exec([headers['x-forwarded-host'] ?? headers.host].join())?.[1]
  return port ?? (headers['x-forwarded-proto'] === 'https' ? '443' : '80')
}

/** The fields of a reply for the client; those that hold one of the credentials in `withheld` stay behind. */
export function toClientFields(head: ReplyHead, withheld: readonly string[]): string[] {
  const own = endToEndFields(head.fields.list())
  return withheld.length === 0
    ? own
    : passing(own, (name, value) => !holdsCredential(`${name}: ${value}`, withheld))
}

/** The fields of a list of names and values that pass; names are compared in lower case. */
function passing(raw: readonly string[], passes: (name: string, value: string) => boolean): string[] {
  const fields: string[] = []
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [name = '', value = ''] = [raw[at], raw[at + 1]]
    if (passes(name.toLowerCase(), value)) fields.push(name, value)
  }
  return fields
}

const BASE64_RUN = /[A-Za-z0-9+/_-]{4,}/g
/** Layers of encoding that are looked through. */
const MAX_LAYERS = 3

/** The credentials of a call that are not the client's own, and that it must not learn from the reply. */
export function addedCredentials(sent: V3Credentials, client: V3Credentials): string[] {
  const token = (authorization: string): string => authorization.replace(/^bearer +/i, '')
  const added: string[] = []
  if (sent.subscriptionKey !== client.subscriptionKey) added.push(sent.subscriptionKey)
  if (token(sent.authorization) !== token(client.authorization)) added.push(token(sent.authorization))
  return added.filter((credential) => credential !== '')
}

/** True for a text that holds one of the credentials: as it is, inside a longer text, percent-encoded or in base64. */
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

/** Texts that a text may have been encoded from, other than itself. */
function decodings(text: string): string[] {
  const texts: string[] = []
  if (text.includes('%'))
    texts.push(
      text.replace(/%([0-9a-f]{2})/gi, (_all, hex: string) => String.fromCharCode(parseInt(hex, 16))),
    )
  if (text.includes('\\')) texts.push(text.replaceAll('\\', ''))
  for (const [run] of text.matchAll(BASE64_RUN)) {
    // A run may begin with other characters of the alphabet, so that its groups of four are shifted.
    for (let shift = 0; shift < 4; shift += 1)
      texts.push(Buffer.from(run.slice(shift), 'base64').toString('latin1'))
  }
  return texts
}
