import { createHash, randomBytes } from 'node:crypto'

import type { Actor, ListedOperator } from '../../rollout/operators.ts'
import { findOperator, toActor, toSystemActor } from '../../rollout/operators.ts'

export interface SignedIn {
  readonly actor: Actor
  /** The hash of the cookie, or the name of the person if a token or a trusted proxy identifies the request. */
  readonly id: string
}

interface Session {
  readonly name: string
  /** The hash of the token of the operator, or `undefined` for a session from a link. The session ends when the token is replaced. */
  readonly tokenSha256: string | undefined
  readonly untilMs: number
}

const SESSION_MS = 12 * 3_600_000
/** The maximum number of sessions, which is more than a team needs. Beyond this number, the oldest session is evicted. */
const MAX_SESSIONS = 500
/** The lifetime of a link that is printed on a terminal and works once. */
const LINK_MS = 12 * 3_600_000

const newToken = (): string => randomBytes(32).toString('base64url')
const keyOf = (token: string): string => createHash('sha256').update(token).digest('base64url')

export type Sessions = ReturnType<typeof createSessions>

/** Creates the sessions of a console, which end with the process. Roles are read from the configuration at each request. */
export function createSessions(
  operators: () => readonly ListedOperator[],
  systemUser: string,
  nowMs: () => number,
) {
  const sessions = new Map<string, Session>()
  const links = new Map<string, number>()

  /** Returns the person with this name, or `undefined` if the configuration no longer lists the person or lists another token. */
  const actorOf = (name: string, tokenSha256?: string): Actor | undefined => {
    const list = operators()
    const system = toSystemActor(systemUser)
    if (list.length === 0) return name === system.name ? system : undefined
    const found = list.find((operator) => operator.name === name)
    return found === undefined || (tokenSha256 ?? found.tokenSha256) !== found.tokenSha256
      ? undefined
      : toActor(found)
  }
  const open = (name: string, tokenSha256: string | undefined): string => {
    const token = newToken()
    const [oldest] = sessions.keys()
    if (sessions.size >= MAX_SESSIONS && oldest !== undefined) sessions.delete(oldest)
    sessions.set(keyOf(token), { name, tokenSha256, untilMs: nowMs() + SESSION_MS })
    return token
  }
  return {
    /** Signs in the operator with this token and returns the value of the cookie, or `undefined` if no operator has the token. */
    enter: (token: string): string | undefined => {
      const operator = findOperator(operators(), token)
      return operator && open(operator.name, operator.tokenSha256)
    },
    /** Returns a token that signs in the user of the operating system once, or `undefined` if the configuration names operators. */
    createLink: (): string | undefined => {
      if (operators().length > 0) return undefined
      const token = newToken()
      links.set(keyOf(token), nowMs() + LINK_MS)
      return token
    },
    /** Signs in with the token of a link and returns the value of the cookie, or `undefined` if the link is not valid. */
    enterByLink: (token: string): string | undefined => {
      const key = keyOf(token)
      const untilMs = links.get(key)
      links.delete(key)
      const isValid = untilMs !== undefined && untilMs > nowMs() && operators().length === 0
      return isValid ? open(toSystemActor(systemUser).name, undefined) : undefined
    },
    find: (cookie: string): SignedIn | undefined => {
      const id = keyOf(cookie)
      const { name = '', tokenSha256, untilMs = 0 } = sessions.get(id) ?? {}
      const actor = untilMs > nowMs() ? actorOf(name, tokenSha256) : undefined
      if (actor === undefined) sessions.delete(id)
      return actor && { actor, id }
    },
    findNamed: (name: string): SignedIn | undefined => {
      const actor = operators().length === 0 ? undefined : actorOf(name)
      return actor && { actor, id: name }
    },
    findByToken: (token: string): SignedIn | undefined => {
      const operator = findOperator(operators(), token)
      return operator && { actor: toActor(operator), id: operator.name }
    },
    end: (id: string): void => void sessions.delete(id),
  }
}
