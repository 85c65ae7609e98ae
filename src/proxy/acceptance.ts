import type { IncomingMessage } from 'node:http'

import { pathOf } from '../http/request-target.ts'

/** Metadata, and the document that lists the sets of a service. */
const PUBLIC = /\$metadata|^\/?$|\/v\d+(?:\/(?:attendance|learner))?\/?$/i

/**
 * True for a reply that shows that a service takes the credentials of its request: success, for a request that needs some. Services describe
 * themselves to everyone, gateways answer OPTIONS by themselves, and send who is not known elsewhere.
 */
export function showsAcceptance(request: IncomingMessage, status: number): boolean {
  return status >= 200 && status < 300 && request.method !== 'OPTIONS' && !PUBLIC.test(pathOf(request))
}
