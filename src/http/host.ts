import type { IncomingMessage } from 'node:http'

import { AdapterError } from '../errors.ts'

// RFC 3986 3.2.2, 3.2.3, restricted to names and addresses in use: the host is written into links of the reply.
const HOST = /^(?:[\w.~-]+|\[[0-9a-f:.]+\])(?::\d{0,5})?$/i

/** Refuses a request with two `Host` headers or none; Node's parser lets two pass (RFC 9112 3.2). */
export function checkHost(request: Pick<IncomingMessage, 'headers' | 'rawHeaders'>): string {
  const { rawHeaders } = request
  let count = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]
    if (name?.length === 4 && name.toLowerCase() === 'host') count += 1
  }
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
