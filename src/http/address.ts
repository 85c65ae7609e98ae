import type { IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'

import { AdapterError } from '../errors.ts'

// RFC 3986 3.2.2, 3.2.3, restricted to names and addresses in use: the host is written into links of the reply.
const HOST = /^(?:[\w.~-]+|\[[0-9a-f:.]+\])(?::\d{0,5})?$/i
/** A name of 255 characters (RFC 1035 2.3.4) and a port: each part of a reply repeats it. */
const MAX_HOST = 261

/** Refuses a request with two `Host` headers or none; Node's parser lets two pass (RFC 9112 3.2). */
export function checkHost(request: Pick<IncomingMessage, 'headers' | 'rawHeaders'>): string {
  const { rawHeaders } = request
  let count = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]
    if (name?.length === 4 && name.toLowerCase() === 'host') count += 1
  }
  const { host } = request.headers
  if (count !== 1 || host === undefined || host.length > MAX_HOST || !HOST.test(host)) {
    throw new AdapterError('ADP_HOST', 'The request must have exactly one valid Host header (RFC 9112 3.2).')
  }
  return host
}

/** The name in a Host header, in lower case, without its port. */
export function hostName(host: string): string {
  return host.replace(/:\d*$/, '').toLowerCase()
}

/** True for the host name of an address that never leaves the machine, as `URL` writes it. */
export function isLoopback(hostname: string): boolean {
  return /^(?:localhost|.+\.localhost|127(?:\.\d{1,3}){3}|\[::1\])$/i.test(hostname)
}

/** True for the address of a peer on this machine. */
export function isLoopbackAddress(address: string): boolean {
  return /^(?:::ffff:)?127\.|^::1$/.test(address)
}

/** A set of IP addresses. */
export interface AddressList {
  has(address: string): boolean
}

interface Range {
  readonly address: string
  readonly prefix: number
  readonly family: 'ipv4' | 'ipv6'
}

/** Reads an IP address or a range in CIDR form; undefined for anything else. */
export function parseAddressRange(text: string): Range | undefined {
  const [address = '', prefix, ...rest] = text.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0 || address.includes('%')) return undefined
  const bits = version === 4 ? 32 : 128
  if (prefix !== undefined && (!/^\d{1,3}$/.test(prefix) || Number(prefix) > bits)) return undefined
  return { address, prefix: Number(prefix ?? bits), family: version === 4 ? 'ipv4' : 'ipv6' }
}

/** Creates the set of addresses in `ranges`. An IPv4 address equals its form mapped into IPv6. */
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

/** An IPv4 address as itself, not mapped into IPv6. */
export function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '')
}

/**
 * True where nothing of a user or password stands behind the host of an address. An unencoded `/`, `?` or `#` in a password ends the host
 * early (RFC 3986 3.2), and the rest of the password would be shown as part of the path.
 */
export function hasWholeHost({ pathname, search, hash }: URL): boolean {
  return !`${pathname}${search}${hash}`.includes('@')
}

/** What the address of a journal has to be, as the end of a sentence; it repeats nothing of one. */
export const JOURNAL_ADDRESS =
  'must be sqlite:<file>, postgres://<user>:<password>@<host>/<database> or none; characters such as / @ : ? # and % in the user or password ' +
  'have to be percent-encoded (/ as %2F, @ as %40)'

/** True for the address of a PostgreSQL database. */
export function isPostgresAddress(text: string): boolean {
  return /^postgres(?:ql)?:\/\/./.test(text) && URL.canParse(text) && hasWholeHost(new URL(text))
}

/** Returns a text without what an address in it has before its host: up to the last `@` of a line, since a password may hold anything. */
export function hideUsers(text: string): string {
  return text.replace(/(:\/\/).*@/g, '$1')
}
