import { isIP } from 'node:net'

import type { Request } from 'express'

import type { ConsoleConfig } from '../../config/index.ts'
import { type AddressList, hostName, isLoopbackAddress, plainAddress } from '../../http/address.ts'
import type { Sessions, SignedIn } from './sessions.ts'

export const COOKIE = 'markbridge_console'

interface Identified {
  /** The sender, or `undefined` if the configuration does not list the sender. */
  readonly signedIn: SignedIn | undefined
  readonly isWrongToken: boolean
}

/** Creates a function that identifies the sender of a request by a token, else by the name from a trusted proxy, else by the cookie. */
export function createIdentify(
  sessions: Sessions,
  { identity }: Pick<ConsoleConfig, 'identity'>,
  isFromProxy: (request: Request) => boolean,
) {
  return (request: Request): Identified => {
    const [, token] = /^bearer +(\S+)$/i.exec(request.headers.authorization ?? '') ?? []
    if (token !== undefined) {
      const signedIn = sessions.findByToken(token)
      return { signedIn, isWrongToken: signedIn === undefined }
    }
    const named = identity && request.headers[identity.header.toLowerCase()]
    if (typeof named === 'string' && isFromProxy(request))
      return { signedIn: sessions.findNamed(named), isWrongToken: false }
    const cookie = readCookie(request.headers.cookie)
    return { signedIn: cookie === undefined ? undefined : sessions.find(cookie), isWrongToken: false }
  }
}

export const peerOf = ({ socket }: Pick<Request, 'socket'>): string =>
  plainAddress(socket.remoteAddress ?? '')

/** Returns the address to count failed attempts for: the peer, or behind trusted proxies the last address that is not a proxy. */
export function clientOf(request: Request, proxies: AddressList): string {
  const peer = peerOf(request)
  const heard = (request.get('x-forwarded-for') ?? '').split(',').map((one) => plainAddress(one.trim()))
  // Each trusted proxy appends the address of its peer. Anything before the last untrusted address may be forged by this client.
  const client = [...heard, peer].findLast((hop) => !proxies.has(hop)) ?? ''
  return isIP(client) === 0 ? peer : client
}

function readCookie(header = ''): string | undefined {
  const found = header.split(';').flatMap((pair) => {
    const [name = '', value = ''] = pair.split('=', 2)
    return name.trim() === COOKIE ? [value.trim()] : []
  })
  // Another application on the same host may have set a cookie of this name too, and the two cookies cannot be told apart.
  return found.length === 1 ? found[0] : undefined
}

/**
 * Creates a check of the host name in a request. The check prevents DNS rebinding, in which a page under a foreign host name reads the
 * console. A peer on this machine may use the loopback names.
 */
export function createHostCheck({ host, hosts }: Pick<ConsoleConfig, 'host' | 'hosts'>) {
  const own = new Set([...hosts, host.includes(':') ? `[${host}]` : host.toLowerCase()])
  const loopback = new Set(['localhost', '127.0.0.1', '[::1]'])
  return (request: Request): boolean => {
    const name = hostName(request.headers.host ?? '')
    return own.has(name) || (loopback.has(name) && isLoopbackAddress(request.socket.remoteAddress ?? ''))
  }
}

/** The number of failed attempts that one address may make at once. After each `EACH_MS`, one of them no longer counts. */
const BURST = 10
const EACH_MS = 6_000
const TOTAL = 100
const EACH_OF_ALL_MS = 600
const MAX_ADDRESSES = 10_000

interface Bucket {
  failed: number
  atMs: number
}

export function createLoginLimit(nowMs: () => number) {
  const all: Bucket = { failed: 0, atMs: nowMs() }
  const addresses = new Map<string, Bucket>()
  const drained = (bucket: Bucket, eachMs: number): Bucket => {
    const passed = (nowMs() - bucket.atMs) / eachMs
    return Object.assign(bucket, { failed: Math.max(0, bucket.failed - passed), atMs: nowMs() })
  }
  return {
    /** Returns the seconds that this address must wait before its next attempt; 0 if it may try now. */
    waitOf: (address: string): number => {
      const own = addresses.get(address)
      const ownMs = own === undefined ? 0 : (drained(own, EACH_MS).failed + 1 - BURST) * EACH_MS
      const allMs = (drained(all, EACH_OF_ALL_MS).failed + 1 - TOTAL) * EACH_OF_ALL_MS
      // An address without a failed attempt may always try, whatever other addresses do.
      return Math.ceil(Math.max(0, ownMs, own === undefined ? 0 : allMs) / 1_000)
    },
    failed: (address: string): void => {
      const own = addresses.get(address) ?? { failed: 0, atMs: nowMs() }
      drained(own, EACH_MS).failed += 1
      drained(all, EACH_OF_ALL_MS).failed += 1
      addresses.delete(address)
      addresses.set(address, own)
      const [oldest] = addresses.keys()
      if (addresses.size > MAX_ADDRESSES && oldest !== undefined) addresses.delete(oldest)
    },
  }
}
