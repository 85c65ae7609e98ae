import { isIP } from 'node:net'

import type { Request } from 'express'

import type { ConsoleConfig } from '../../config/index.ts'
import { type AddressList, hostName, isLoopbackAddress, plainAddress } from '../../http/address.ts'
import type { Sessions, SignedIn } from './sessions.ts'

export const COOKIE = 'markbridge_console'

interface Identified {
  /** `undefined` if the configuration names no such person. */
  readonly signedIn: SignedIn | undefined
  readonly isWrongToken: boolean
}

/** Finds the sender of a request: by a token in the request, else by the name that a trusted proxy sets, else by the cookie. */
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

/** Returns the address for which attempts to sign in are counted: the peer's, or the last address that is not a trusted proxy. */
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
  // Another page of the host may have set a cookie of this name too, and the two cannot be told apart.
  return found.length === 1 ? found[0] : undefined
}

/**
 * Creates a check of the name under which a request addresses the console. A page of another name that resolves to this address must not
 * read the console (DNS rebinding). A peer on this machine may use the names of loopback.
 */
export function createHostCheck({ host, hosts }: Pick<ConsoleConfig, 'host' | 'hosts'>) {
  const own = new Set([...hosts, host.includes(':') ? `[${host}]` : host.toLowerCase()])
  const loopback = new Set(['localhost', '127.0.0.1', '[::1]'])
  return (request: Request): boolean => {
    const name = hostName(request.headers.host ?? '')
    return own.has(name) || (loopback.has(name) && isLoopbackAddress(request.socket.remoteAddress ?? ''))
  }
}

/** One address may fail this often at once. One failed attempt no longer counts after each interval. */
const BURST = 10
const EACH_MS = 6_000
const TOTAL = 100
const EACH_OF_ALL_MS = 600
const MAX_ADDRESSES = 10_000

interface Bucket {
  failed: number
  atMs: number
}

/** Creates the limit of failed attempts to sign in, for each address and for all addresses together. */
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
