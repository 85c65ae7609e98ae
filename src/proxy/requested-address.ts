import { createHmac } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

import { readTarget } from '../http/request-target.ts'
import type { Client } from '../partners/partner.ts'
import type { ReadContext } from '../reads/read-request.ts'
import type { Side } from '../rollout/stage.ts'

/** Returns the requested address without its query. The path has the client's spelling. */
export function addressOf(request: IncomingMessage): string {
  return serviceRoot(request, readTarget(request.url ?? '').rawPath)
}

/** Returns the address for next links of V3. If V2 may serve the next request, a marker in the address says that V3 issued the link. */
export function nextAddressOf(
  { linkSecret }: Pick<ReadContext, 'linkSecret'>,
  { request, client }: { readonly request: IncomingMessage; readonly client: Client },
): string {
  if (client.partner.v2 === undefined) return addressOf(request)
  const segment = v3LinkSegment(linkSecret, client.owner)
  return serviceRoot(request, segment + readTarget(request.url ?? '').rawPath)
}

/** Returns the adapter's address as the client knows it, followed by `path`, from the fields that `replaceForwarding` sets. */
export function serviceRoot({ headers }: IncomingMessage, path: string): string {
  const scheme = headers['x-forwarded-proto'] === 'https' ? 'https' : 'http'
  const [host, prefix] = [headers['x-forwarded-host'] ?? headers.host, headers['x-forwarded-prefix']]
  return `${scheme}://${[host ?? ''].join()}${[prefix ?? ''].join()}${path}`
}

/** The marker at the beginning of the path of a next link, by which the side that issued the link also serves the next page. */
export interface LinkMarker {
  readonly side: Side
  /** The proof that the link was issued to its client. Empty for V2, which validates its own links. */
  readonly proof: string
}

export const V2_LINK_SEGMENT = '/~v2'
const V3_LINK_SEGMENT = '/~v3.'

/**
 * Matches a marker in front of a path of V2, because only such paths have next links. A marker in front of `/metrics` would evade rules of
 * load balancers, which compare the path as text. Clients may percent-encode the tilde (RFC 3986 2.3 calls both forms equivalent).
 */
const MARKED = /^((?:https?:\/\/[^/?#]+)?)\/(?:~|%7e)(v2|v3\.([\w-]{22}))(?=\/(?:[^?#]*\/)?v2\/)/i

/** Returns the signed marker of a next link that V3 issued. Without the signature, a client could choose V3 at a stage where V2 serves. */
export function v3LinkSegment(secret: Uint8Array, owner: string): string {
  return V3_LINK_SEGMENT + proofOf(secret, owner)
}

/** Returns true if V3 issued the link to this owner. Also returns true for every link of V2, because V2 validates its own links. */
export function isIssuedTo(marker: LinkMarker, secret: () => Uint8Array, owner: string): boolean {
  return marker.side === 'v2' || marker.proof === proofOf(secret(), owner)
}

/** Removes the marker from the target before the target is read, and returns the marker, or `undefined` if there is none. */
export function takeSideMarker(request: IncomingMessage): LinkMarker | undefined {
  const { url = '' } = request
  const found = MARKED.exec(url)
  if (found === null) return undefined
  const [whole, origin = '', , proof] = found
  request.url = origin + url.slice(whole.length)
  return proof === undefined ? { side: 'v2', proof: '' } : { side: 'v3', proof }
}

function proofOf(secret: Uint8Array, owner: string): string {
  const digest = createHmac('sha256', secret).update(`side of next links: v3 ${owner}`).digest()
  return digest.subarray(0, 16).toString('base64url')
}
