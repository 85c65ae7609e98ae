import { BlockList, isIP } from 'node:net'

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
