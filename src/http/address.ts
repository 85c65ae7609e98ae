import type { IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'

import { AdapterError } from '../errors.ts'

// A host with an optional port (RFC 3986 3.2.2, 3.2.3). The pattern is strict, because the adapter writes the host into links.
const HOST = /^(?:[\w.~-]+|\[[0-9a-f:.]+\])(?::\d{0,5})?$/i
/**
 * The maximum length of a host with its port: a name of 255 characters (RFC 1035 2.3.4) and `:65535`. A limit is needed, because each part
 * of a batch reply repeats the host.
 */
const MAX_HOST = 261

/** Returns the host of a request. Throws `ADP_HOST` unless the request has exactly one valid `Host` header (RFC 9112 3.2). */
export function checkHost(request: Pick<IncomingMessage, 'headers' | 'rawHeaders'>): string {
  const { rawHeaders } = request
  let count = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]
    if (name?.length === 4 && name.toLowerCase() === 'host') count += 1
  }
  const { host } = request.headers
  if (count !== 1 || host === undefined || host.length > MAX_HOST || !HOST.test(host)) {
    throw new AdapterError(
      'ADP_HOST',
      'The request must have exactly one valid Host header (RFC 9112 3.2). Nothing was sent. Send the request again with one Host header.',
    )
  }
  return host
}

/** Returns the host in lower case, without the port. */
export function hostName(host: string): string {
  return host.replace(/:\d*$/, '').toLowerCase()
}

/**
 * Returns true for names and addresses that always refer to this machine, such as `localhost` and `[::1]`. Expects the form of
 * `URL.hostname`.
 */
export function isLoopback(hostname: string): boolean {
  return /^(?:localhost|.+\.localhost|127(?:\.\d{1,3}){3}|\[::1\])$/i.test(hostname)
}

export function isLoopbackAddress(address: string): boolean {
  return /^(?:::ffff:)?127\.|^::1$/.test(address)
}

export interface AddressList {
  has(address: string): boolean
}

interface Range {
  readonly address: string
  readonly prefix: number
  readonly family: 'ipv4' | 'ipv6'
}

/** Parses an IP address or a range in CIDR notation. Returns `undefined` for any other text. */
export function parseAddressRange(text: string): Range | undefined {
  const [address = '', prefix, ...rest] = text.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0 || address.includes('%')) return undefined
  const bits = version === 4 ? 32 : 128
  if (prefix !== undefined && (!/^\d{1,3}$/.test(prefix) || Number(prefix) > bits)) return undefined
  return { address, prefix: Number(prefix ?? bits), family: version === 4 ? 'ipv4' : 'ipv6' }
}

/** Creates a list of addresses and ranges. An IPv4 address matches its IPv4-mapped IPv6 form. */
export function createAddressList(ranges: readonly string[]): AddressList {
  if (ranges.length === 0) return { has: () => false }
  const list = new BlockList()
  for (const text of ranges) {
    const range = parseAddressRange(text)
    if (range !== undefined) list.addSubnet(range.address, range.prefix, range.family)
  }
  return {
    has: (address) => {
      const plain = plainAddress(address)
      const version = isIP(plain)
      return version !== 0 && list.check(plain, version === 4 ? 'ipv4' : 'ipv6')
    },
  }
}

/** Returns the IPv4 form of an IPv4-mapped IPv6 address, and any other address unchanged. */
export function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '')
}

/**
 * Returns false if an `@` follows the host. A password with an unencoded `/`, `?` or `#` ends the host too early (RFC 3986 3.2) and leaves
 * its `@` behind.
 */
export function hasWholeHost({ pathname, search, hash }: URL): boolean {
  return !`${pathname}${search}${hash}`.includes('@')
}

/** The second half of an error message about the address of a journal. It does not quote the address, which may contain a password. */
export const JOURNAL_ADDRESS =
  'must be sqlite:<file>, postgres://<user>:<password>@<host>/<database> or none; characters such as / @ : ? # and % in the user or password ' +
  'have to be percent-encoded (/ as %2F, @ as %40)'

export function isPostgresAddress(text: string): boolean {
  return /^postgres(?:ql)?:\/\/./.test(text) && URL.canParse(text) && hasWholeHost(new URL(text))
}

/**
 * Removes user names and passwords from URLs. Removes everything up to the last `@` of a line, because a password may contain any
 * character.
 */
export function hideUsers(text: string): string {
  return text.replace(/(:\/\/).*@/g, '$1')
}
