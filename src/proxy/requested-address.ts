import { createHmac } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

import { readTarget } from '../http/request-target.ts'
import type { Client } from '../partners/partner.ts'
import type { ReadContext } from '../reads/read-request.ts'
import type { Side } from '../rollout/stage.ts'

/** The requested address with the client's spelling of the path, without the query. */
export function addressOf(request: IncomingMessage): string {
  return serviceRoot(request, readTarget(request.url ?? '').rawPath)
}

/** `addressOf` for the next links of a page that V3 serves: where V2 may serve the next request, they say that V3 issued them. */
export function nextAddressOf(
  { linkSecret }: Pick<ReadContext, 'linkSecret'>,
  { request, client }: { readonly request: IncomingMessage; readonly client: Client },
): string {
  if (client.partner.v2 === undefined) return addressOf(request)
  const segment = v3LinkSegment(linkSecret, client.owner)
  return serviceRoot(request, segment + readTarget(request.url ?? '').rawPath)
}

/** The address of the adapter as the client knows it, with `path`. Scheme, host and prefix are what `replaceForwarding` left. */
export function serviceRoot({ headers }: IncomingMessage, path: string): string {
  const scheme = headers['x-forwarded-proto'] === 'https' ? 'https' : 'http'
  const [host, prefix] = [headers['x-forwarded-host'] ?? headers.host, headers['x-forwarded-prefix']]
  return `${scheme}://${[host ?? ''].join()}${[prefix ?? ''].join()}${path}`
}

/** The marker in front of the path of a next link: the side that issued the link also serves the page that it leads to. */
export interface LinkMarker {
  readonly side: Side
  /** That the link was issued to its client; empty for V2, which judges its own links. */
  readonly proof: string
}

/** The first segment of the path of a next link that V2 issued. */
export const V2_LINK_SEGMENT = '/~v2'
const V3_LINK_SEGMENT = '/~v3.'

/**
 * A marker before a path of V2: next links have no other, and in front of `/metrics` it would pass what a load balancer compares with that
 * text. Clients may escape the tilde (RFC 3986 2.3 calls both forms the same).
 */
const MARKED = /^((?:https?:\/\/[^/?#]+)?)\/(?:~|%7e)(v2|v3\.([\w-]{22}))(?=\/(?:[^?#]*\/)?v2\/)/i

/**
 * The first segment of the path of a next link that V3 issued to an owner. It is signed, so that no client chooses V3 by itself at a stage
 * where V2 serves.
 */
export function v3LinkSegment(secret: Uint8Array, owner: string): string {
  return V3_LINK_SEGMENT + proofOf(secret, owner)
}

/** True for the marker of a link that its side issued to this owner. */
export function isIssuedTo(marker: LinkMarker, secret: () => Uint8Array, owner: string): boolean {
  return marker.side === 'v2' || marker.proof === proofOf(secret(), owner)
}

/**
 * Takes the marker of the issuing side off the target of a request, before the target is read: all later steps see the path that
 * the service knows. Undefined: the target has none.
 */
export function takeSideMarker(request: IncomingMessage): LinkMarker | undefined {
  const { url = '' } = request
  const found = MARKED.exec(url)
  if (found === null) return undefined
  const [whole, origin = '', , proof] = found
  request.url = origin + url.slice(whole.length)
  return proof === undefined ? { side: 'v2', proof: '' } : { side: 'v3', proof }
}

/** 128 bits as base64url. */
function proofOf(secret: Uint8Array, owner: string): string {
  const digest = createHmac('sha256', secret).update(`side of next links: v3 ${owner}`).digest()
  return digest.subarray(0, 16).toString('base64url')
}
