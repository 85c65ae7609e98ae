import type { IncomingMessage } from 'node:http'

import { readTarget } from '../http/request-target.ts'
import type { Client } from '../partners/partner.ts'
import type { ReadContext } from '../reads/index.ts'
import { v3LinkSegment } from './next-link-side.ts'

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

/**
 * The address of the records, spelt as the client spells the path of its write: that path for a single record, its sibling for a batch.
 * Undefined where the reply has no `Location`: parts of the flat layout are as service.md 4.2 shows them.
 */
export function recordsUrlOf(
  request: IncomingMessage,
  { kind, layout }: { readonly kind: 'batch' | 'record'; readonly layout: 'flat' | 'nested' },
): string | undefined {
  const address = addressOf(request).replace(/\/$/, '')
  if (kind === 'record') return address
  return layout === 'nested' ? address.replace(/[^/]+$/, 'AttendanceRecords') : undefined
}

/** The address of the adapter as the client knows it, with `prefix`. The scheme is what `replaceForwarding` left. */
export function serviceRoot(request: IncomingMessage, prefix: string): string {
  const scheme = request.headers['x-forwarded-proto'] === 'https' ? 'https' : 'http'
  return `${scheme}://${request.headers.host ?? ''}${prefix}`
}
