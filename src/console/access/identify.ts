import { isIP } from 'node:net'

import type { Request } from 'express'

import type { ConsoleConfig } from '../../config/index.ts'
import { type AddressList, hostName, isLoopbackAddress } from '../../http/address.ts'
import type { Sessions, SignedIn } from './sessions.ts'

export const COOKIE = 'markbridge_console'

/**
 * Creates a function that identifies the sender of a request by a bearer token, else by the name from a trusted proxy, else by the cookie.
 * `signedIn` is `undefined` if the request identifies nobody who may use the console.
 */
export function createIdentify(
  sessions: Sessions,
  { identity }: Pick<ConsoleConfig, 'identity'>,
  proxies: AddressList,
) {
  return (request: Request): { readonly signedIn: SignedIn | undefined; readonly isWrongToken: boolean } => {
    const [, token] = /^bearer +(\S+)$/i.exec(request.headers.authorization ?? '') ?? []
    if (token !== undefined) {
      const signedIn = sessions.findByToken(token)
      return { signedIn, isWrongToken: signedIn === undefined }
    }
    const named = identity && request.headers[identity.header.toLowerCase()]
    if (typeof named === 'string' && proxies.has(request.socket.remoteAddress ?? ''))
      return { signedIn: sessions.findNamed(named), isWrongToken: false }
    const cookie = readCookie(request.headers.cookie)
    return { signedIn: cookie === undefined ? undefined : sessions.find(cookie), isWrongToken: false }
  }
}

/**
 * Returns the address for which failed attempts to sign in are counted. Behind trusted proxies this is the last address that is not a
 * proxy, and otherwise the address of the peer.
 */
export const clientOf = ({ ip = '', socket }: Request): string =>
  isIP(ip) === 0 ? (socket.remoteAddress ?? '') : ip

function readCookie(header = ''): string | undefined {
  const found = header.split(';').flatMap((pair) => {
    const [name = '', value = ''] = pair.split('=', 2)
    return name.trim() === COOKIE ? [value.trim()] : []
  })
  // Ignores a cookie that occurs twice. Another application on the same host may have set one of them, and the two cookies cannot be told
  // apart.
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

/** The number of failed attempts that one address may make at once, and the milliseconds after which one of these attempts no longer counts. */
const BURST = 10
const EACH_MS = 6_000
const MAX_ADDRESSES = 10_000

export function createLoginLimit(nowMs: () => number) {
  /** The times at which the last failed attempt of each address no longer counts. */
  const untilMs = new Map<string, number>()
  return {
    /** Returns the seconds that this address must wait before its next attempt, or 0 if the address may try now. */
    waitOf: (address: string): number =>
      Math.ceil(Math.max(0, (untilMs.get(address) ?? 0) - nowMs() - (BURST - 1) * EACH_MS) / 1_000),
    failed: (address: string): void => {
      const ownMs = Math.max(nowMs(), untilMs.get(address) ?? 0) + EACH_MS
      untilMs.delete(address)
      untilMs.set(address, ownMs)
      const [oldest] = untilMs.keys()
      if (untilMs.size > MAX_ADDRESSES && oldest !== undefined) untilMs.delete(oldest)
    },
  }
}
