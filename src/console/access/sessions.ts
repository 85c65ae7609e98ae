import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

import type { Actor, ListedOperator } from '../../rollout/operators.ts'
import { findOperator, toActor, toSystemActor } from '../../rollout/operators.ts'

/** Who is signed in. */
export interface SignedIn {
  readonly actor: Actor
  /** Goes into every form, and comes back with every change. Empty: the request itself has a token, which no other page can send. */
  readonly csrf: string
  /** Undefined: a token or a proxy identifies each request. */
  readonly session: Session | undefined
}

/** A browser that is signed in. */
interface Session {
  readonly key: string
  readonly name: string
  /** That the operator came in with: a session ends when it is replaced. Undefined: by a link. */
  readonly tokenSha256: string | undefined
  readonly untilMs: number
}

const SESSION_MS = 12 * 3_600_000
/** More than any team has; the oldest gives way. */
const MAX_SESSIONS = 500
/** For a link on a terminal, used once. */
const LINK_MS = 12 * 3_600_000

const newToken = (): string => randomBytes(32).toString('base64url')
const keyOf = (token: string): string => createHash('sha256').update(token).digest('base64url')

/** The ways into the console, and who is in. */
export type Sessions = ReturnType<typeof createSessions>

/** Creates the sessions of one console; nothing of them outlives its process. Roles are those of the operators at each request. */
export function createSessions(
  operators: () => readonly ListedOperator[],
  systemUser: string,
  nowMs: () => number,
) {
  const sessions = new Map<string, Session>()
  const links = new Map<string, number>()
  const secret = randomBytes(32)
  const csrfOf = (of: string): string => createHmac('sha256', secret).update(of).digest('base64url')

  /** The person as the configuration has it now; undefined: it no longer has it. */
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
    const key = keyOf(token)
    const [oldest] = sessions.keys()
    if (sessions.size >= MAX_SESSIONS && oldest !== undefined) sessions.delete(oldest)
    sessions.set(key, { key, name, tokenSha256, untilMs: nowMs() + SESSION_MS })
    return token
  }
  return {
    /** Signs the operator of a token in; gives the value of the cookie. Undefined: it belongs to none. */
    enter: (token: string): string | undefined => {
      const operator = findOperator(operators(), token)
      return operator && open(operator.name, operator.tokenSha256)
    },
    /** A token for one use, for the user of the system. Undefined where operators are named: each has a token. */
    createLink: (): string | undefined => {
      if (operators().length > 0) return undefined
      const token = newToken()
      links.set(keyOf(token), nowMs() + LINK_MS)
      return token
    },
    /** Signs in with such a link; gives the value of the cookie. */
    enterByLink: (token: string): string | undefined => {
      const key = keyOf(token)
      const untilMs = links.get(key)
      links.delete(key)
      const isValid = untilMs !== undefined && untilMs > nowMs() && operators().length === 0
      return isValid ? open(toSystemActor(systemUser).name, undefined) : undefined
    },
    find: (cookie: string): SignedIn | undefined => {
      const session = sessions.get(keyOf(cookie))
      if (session === undefined) return undefined
      const actor = session.untilMs > nowMs() ? actorOf(session.name, session.tokenSha256) : undefined
      if (actor !== undefined) return { actor, csrf: csrfOf(`session ${session.key}`), session }
      sessions.delete(session.key)
      return undefined
    },
    /** The operator whom a proxy names. */
    findNamed: (name: string): SignedIn | undefined => {
      const actor = operators().length === 0 ? undefined : actorOf(name)
      return actor && { actor, csrf: csrfOf(`named ${name}`), session: undefined }
    },
    /** The operator of a token that comes with the request itself, so that no other page can send it. */
    findByToken: (token: string): SignedIn | undefined => {
      const operator = findOperator(operators(), token)
      return operator && { actor: toActor(operator), csrf: '', session: undefined }
    },
    end: ({ session }: SignedIn): void => {
      if (session !== undefined) sessions.delete(session.key)
    },
  }
}

/** True for the token of a form that this console has made for this person. */
export function isOwnForm({ csrf }: SignedIn, given: unknown): boolean {
  if (typeof given !== 'string') return false
  const [own, other] = [Buffer.from(csrf), Buffer.from(given)]
  return csrf !== '' && own.byteLength === other.byteLength && timingSafeEqual(own, other)
}
