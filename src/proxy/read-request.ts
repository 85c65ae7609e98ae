import type { IncomingMessage } from 'node:http'

import { readBody } from '../http/body.ts'
import { readTarget } from '../http/request-target.ts'
import type { Slices } from '../http/slices.ts'
import type { ReadContext } from '../reads/index.ts'
import type { Client } from '../partners/partner.ts'
import type { HeldBytes } from './byte-budget.ts'
import { v3LinkSegment } from './next-link-side.ts'

/**
 * Reads a request body within the limit of one request and the budget of all. The caller releases `held` when the request is
 * answered. Errors as `readBody`, and `ADP_OVERLOADED`.
 */
export function readRequest(
  request: IncomingMessage,
  maxBytes: number,
  held: HeldBytes,
  slices: Slices,
): Promise<Buffer> {
  return readBody(request, {
    maxBytes,
    contentEncoding: request.headers['content-encoding'],
    contentLength: request.headers['content-length'],
    onBytes: (count) => held.take(count),
    slices,
  })
}

/** The requested address with the client's spelling of the path, without the query. */
export function addressOf(request: IncomingMessage): string {
  return serviceRoot(request, readTarget(request.url ?? '').rawPath)
}

/** `addressOf` for the next links of a page that V3 serves: where V2 may serve the next request, they say that V3 issued them. */
export function nextAddressOf(
  { linkSecret }: Pick<ReadContext, 'linkSecret'>,
  { request, authorisation }: { readonly request: IncomingMessage; readonly authorisation: Client },
): string {
  if (authorisation.partner.v2 === undefined) return addressOf(request)
  const segment = v3LinkSegment(linkSecret, authorisation.owner)
  return serviceRoot(request, segment + readTarget(request.url ?? '').rawPath)
}

/** The address of the adapter as the client knows it, with `prefix`. The scheme is what `replaceForwarding` left. */
export function serviceRoot(request: IncomingMessage, prefix: string): string {
  const scheme = request.headers['x-forwarded-proto'] === 'https' ? 'https' : 'http'
  return `${scheme}://${request.headers.host ?? ''}${prefix}`
}
