import { createHmac } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

import { readTarget } from '../http/request-target.ts'
import type { Client } from '../partners/partner.ts'
import type { ReadContext } from '../reads/read-request.ts'
import type { Side } from '../rollout/stage.ts'

/** Returns the requested address without its query, in the client's spelling of the path. */
export function addressOf(request: IncomingMessage): string {
  return serviceRoot(request, readTarget(request.url ?? '').rawPath)
}

/** Returns the address for next links of V3, with a marker that V3 issued them if V2 may serve the next request. */
export function nextAddressOf(
  { linkSecret }: Pick<ReadContext, 'linkSecret'>,
  { request, client }: { readonly request: IncomingMessage; readonly client: Client },
): string {
  if (client.partner.v2 === undefined) return addressOf(request)
  const segment = v3LinkSegment(linkSecret, client.owner)
  return serviceRoot(request, segment + readTarget(request.url ?? '').rawPath)
}

/** Returns the adapter's address as the client knows it, followed by `path`, from the fields that `replaceForwarding` has set. */
export function serviceRoot({ headers }: IncomingMessage, path: string): string {
  const scheme = headers['x-forwarded-proto'] === 'https' ? 'https' : 'http'
  const [host, prefix] = [headers['x-forwarded-host'] ?? headers.host, headers['x-forwarded-prefix']]
  return `${scheme}://${[host ?? ''].join()}${[prefix ?? ''].join()}${path}`
}

/** The marker in front of the path of a next link. The side that issued the link also serves the page that it leads to. */
export interface LinkMarker {
  readonly side: Side
  /** The proof that the link was issued to its client. Empty for V2, which validates its own links. */
  readonly proof: string
}

export const V2_LINK_SEGMENT = '/~v2'
const V3_LINK_SEGMENT = '/~v3.'

/**
 * Matches a marker in front of a path of V2, since only such next links exist. In front of `/metrics`, a marker would evade load balancer
 * rules that compare the path as text. Clients may escape the tilde (RFC 3986 2.3 calls both forms equivalent).
 */
const MARKED = /^((?:https?:\/\/[^/?#]+)?)\/(?:~|%7e)(v2|v3\.([\w-]{22}))(?=\/(?:[^?#]*\/)?v2\/)/i

/** Signs the first path segment of a next link that V3 issued, so that a client cannot choose V3 itself at a stage where V2 serves. */
export function v3LinkSegment(secret: Uint8Array, owner: string): string {
  return V3_LINK_SEGMENT + proofOf(secret, owner)
}

/** Returns true if the side of the marker issued the link to this owner. */
export function isIssuedTo(marker: LinkMarker, secret: () => Uint8Array, owner: string): boolean {
  return marker.side === 'v2' || marker.proof === proofOf(secret(), owner)
}

/** Removes the marker before the target is read, so that all later steps see the path that the service knows. */
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
