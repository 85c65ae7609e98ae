import type { IncomingMessage } from 'node:http'

import { AdapterError } from '../errors.ts'
import { readBody } from '../http/body.ts'
import type { Slices } from '../http/slices.ts'
import type { HeldBytes } from './byte-budget.ts'

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

// RFC 3986 3.2.2, 3.2.3, as far as names and addresses in use go: it is written into links of the reply.
const HOST = /^(?:[\w.~-]+|\[[0-9a-f:.]+\])(?::\d{0,5})?$/i

/** Refuses a request with two `Host` headers or none; Node's parser lets two pass (RFC 9112 3.2). */
export function checkHost(request: IncomingMessage): string {
  const { rawHeaders } = request
  let count = 0
  for (let at = 0; at < rawHeaders.length; at += 2) if (rawHeaders[at]?.toLowerCase() === 'host') count += 1
  const { host } = request.headers
  if (count !== 1 || host === undefined || !HOST.test(host)) {
    throw new AdapterError('ADP_HOST', 'The request must have exactly one valid Host header (RFC 9112 3.2).')
  }
  return host
}

/** The name in a Host header, in lower case, without its port. */
export function hostName(host: string): string {
  return host.replace(/:\d*$/, '').toLowerCase()
}

/** The address of the adapter as the client knows it, with `prefix`. The scheme is what `replaceForwarding` left. */
export function serviceRoot(request: IncomingMessage, prefix: string): string {
  const scheme = request.headers['x-forwarded-proto'] === 'https' ? 'https' : 'http'
  return `${scheme}://${request.headers.host ?? ''}${prefix}`
}
