import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { isIP } from 'node:net'

import { type AddressList, plainAddress } from '../http/address.ts'

/** Fields that name the client of a request, its address, or its hops. */
const FORWARDING =
  /^(?:(?:x-)?forwarded(?:-.*)?|via|x-real-ip|(?:x|true|cf|fastly|x-cluster)-(?:client|connecting)-ip|x-envoy-external-address|x-azure-.*ip)$/
/** Fields that make a server serve another method or path than those of the request line. */
const OVERRIDE =
  /^(?:x-(?:http-)?method(?:-override)?|x-original-.*|x-rewrite-.*|x-envoy-original-path|(?:x-|x-waws-)unencoded-url)$/

/** Fields that are removed from every request. */
const REMOVED = new RegExp(`${FORWARDING.source}|${OVERRIDE.source}`)

/** Fields of nearly every request, which are none of these: looking a name up costs less than matching it. */
const USUAL: ReadonlySet<string> = new Set([
  'host',
  'connection',
  'user-agent',
  'accept',
  'accept-encoding',
  'accept-language',
  'authorization',
  'ocp-apim-subscription-key',
  'content-type',
  'content-length',
  'transfer-encoding',
])

const NO_HOPS: readonly string[] = []

/** Servers that hand headers on as variables read `X_Forwarded_For` and `X-Forwarded-For` as one field. */
function plainName(name: string): string {
  const lower = name.toLowerCase()
  return lower.includes('_') ? lower.replaceAll('_', '-') : lower
}

/** True for a request that a proxy has forwarded, as its added fields show. */
export function isForwarded(headers: IncomingHttpHeaders): boolean {
  return Object.keys(headers).some((name) => FORWARDING.test(plainName(name)))
}

/** True for a field that no request takes along, in any case: those about its way, and those that override its method or path. */
function isRemovedField(name: string): boolean {
  return REMOVED.test(plainName(name))
}

/**
 * Replaces the fields about the way of a request by the adapter's own, in place: `X-Forwarded-For`, `X-Forwarded-Proto` and
 * `X-Forwarded-Host`. Every other field of that kind goes, and so does every field that overrides the method or the path. Only
 * a peer in `trusted` is believed, about the scheme and about the addresses before it.
 */
export function replaceForwarding(request: IncomingMessage, trusted: AddressList): void {
  const { headers, socket } = request
  const peer = plainAddress(socket.remoteAddress ?? '')
  const isTrusted = trusted.has(peer)
  const scheme = isTrusted ? itemsOf(headers['x-forwarded-proto']).at(-1)?.toLowerCase() : undefined
  const encrypted = 'encrypted' in socket && socket.encrypted === true
  const hops = isTrusted ? believed(itemsOf(headers['x-forwarded-for']), trusted) : NO_HOPS
  for (const name of Object.keys(headers)) {
    if (!USUAL.has(name) && isRemovedField(name)) Reflect.deleteProperty(headers, name)
  }
  headers['x-forwarded-for'] =
    hops.length === 0 ? peer : [...hops, peer].filter((hop) => hop !== '').join(', ')
  headers['x-forwarded-proto'] = scheme === 'https' || encrypted ? 'https' : 'http'
  headers['x-forwarded-host'] = headers.host ?? ''
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
