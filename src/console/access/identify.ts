import { isIP } from 'node:net'

import type { Request } from 'express'

import type { ConsoleConfig } from '../../config/index.ts'
import { type AddressList, hostName, isLoopbackAddress, plainAddress } from '../../http/address.ts'
import type { Sessions, SignedIn } from './sessions.ts'

export const COOKIE = 'markbridge_console'

/** What a request says of its sender. */
interface Identified {
  /** Undefined: the configuration names no such person. */
  readonly signedIn: SignedIn | undefined
  /** The token of the request belongs to no operator. */
  readonly isWrongToken: boolean
}

/** Finds who sends a request: a token in it first, then what a trusted proxy says, then the cookie. */
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

/** The address of the peer, which is that of a proxy where there is one. */
export const peerOf = ({ socket }: Pick<Request, 'socket'>): string =>
  plainAddress(socket.remoteAddress ?? '')

/** The address that attempts to sign in count for: the peer's, or the one that trusted proxies have the request from. */
export function clientOf(request: Request, proxies: AddressList): string {
  const peer = peerOf(request)
  const heard = (request.get('x-forwarded-for') ?? '').split(',').map((one) => plainAddress(one.trim()))
  // Each proxy adds whom it heard; what is left of the last stranger is the stranger's own text.
  const client = [...heard, peer].findLast((hop) => !proxies.has(hop)) ?? ''
  return isIP(client) === 0 ? peer : client
}

function readCookie(header = ''): string | undefined {
  const found = header.split(';').flatMap((pair) => {
    const [name = '', value = ''] = pair.split('=', 2)
    return name.trim() === COOKIE ? [value.trim()] : []
  })
  // Another page of the host may have set one too: which is meant is not known.
  return found.length === 1 ? found[0] : undefined
}

/**
 * The names under which the console answers. A page of another name that resolves to this address must not read it (DNS rebinding), and
 * a peer on this machine reaches it as loopback.
 */
export function createHostCheck({ host, hosts }: Pick<ConsoleConfig, 'host' | 'hosts'>) {
  const own = new Set([...hosts, host.includes(':') ? `[${host}]` : host.toLowerCase()])
  const loopback = new Set(['localhost', '127.0.0.1', '[::1]'])
  return (request: Request): boolean => {
    const name = hostName(request.headers.host ?? '')
    return own.has(name) || (loopback.has(name) && isLoopbackAddress(request.socket.remoteAddress ?? ''))
  }
}

/** Failed attempts that an address may make at once, and how long one of them counts. */
const BURST = 10
const EACH_MS = 6_000
/** Of all addresses together. */
const TOTAL = 100
const EACH_OF_ALL_MS = 600
const MAX_ADDRESSES = 10_000

interface Bucket {
  failed: number
  atMs: number
}

/** Creates the limit of failed attempts to sign in, by address and in all: 10 failures at once from one address, then one each 6 s; 100 at once in all, then one each 0.6 s. */
export function createLoginLimit(nowMs: () => number) {
  const all: Bucket = { failed: 0, atMs: nowMs() }
  const addresses = new Map<string, Bucket>()
  const drained = (bucket: Bucket, eachMs: number): Bucket => {
    const passed = (nowMs() - bucket.atMs) / eachMs
    return Object.assign(bucket, { failed: Math.max(0, bucket.failed - passed), atMs: nowMs() })
  }
  return {
    /** Seconds to wait before the next attempt of this address; 0: it may try. */
    waitOf: (address: string): number => {
      const own = addresses.get(address)
      const ownMs = own === undefined ? 0 : (drained(own, EACH_MS).failed + 1 - BURST) * EACH_MS
      const allMs = (drained(all, EACH_OF_ALL_MS).failed + 1 - TOTAL) * EACH_OF_ALL_MS
      // One that has not failed yet is let in whatever others do.
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
