import { createHash, timingSafeEqual } from 'node:crypto'

import { AdapterError } from '../errors.ts'

export type OperatorRole = 'operator' | 'approver' | 'viewer'

/**
 * What an operator may do. `look` only reads, `set` changes a stage, `back` is the kill switch, `approve` approves the change of another
 * operator, and `dismiss` declares that a lost instance is off, so that steps forward are possible again.
 */
export type RolloutAction = 'look' | 'set' | 'dismiss' | 'approve' | 'back'

export interface ListedOperator {
  readonly name: string
  /** The SHA-256 of the operator's token, in lower-case hexadecimal. */
  readonly tokenSha256: string
  readonly role: OperatorRole
  /** The only partners that the operator sees and changes, or `undefined` for all partners. */
  readonly partners?: readonly string[] | undefined
  /** True if the operator may see the values of a record after giving a reason. Default false. */
  readonly reveal?: boolean
}

export interface Actor {
  /** The name in the audit trail. A user of the operating system appears as `os:<user>`. */
  readonly name: string
  readonly role: OperatorRole
  readonly partners: readonly string[] | undefined
  readonly reveal: boolean
}

/**
 * The prefix of the names of operating-system users. Names in the configuration contain no colon, so the two kinds of names never collide.
 */
const SYSTEM = 'os:'

/** The actions that each role allows. Every role except `viewer` allows the kill switch `back`. */
const allowed: Readonly<Record<OperatorRole, readonly RolloutAction[]>> = {
  operator: ['look', 'set', 'dismiss', 'approve', 'back'],
  approver: ['look', 'approve', 'back'],
  viewer: ['look'],
}

/**
 * Identifies the person who acts. If the configuration has no operators, this is the user of the operating system, otherwise the operator
 * to whom the token belongs. Throws `ADP_FORBIDDEN` if the token is missing or unknown.
 */
export function identifyOperator(
  operators: readonly ListedOperator[],
  token: string | undefined,
  systemUser: string,
): Actor {
  if (operators.length === 0) return toSystemActor(systemUser)
  if (token === undefined)
    throw new AdapterError(
      'ADP_FORBIDDEN',
      'The configuration lists operators, but no token was given. Nothing was done. Set MARKBRIDGE_OPERATOR_TOKEN to the token of an operator.',
    )
  const operator = findOperator(operators, token)
  if (operator === undefined)
    throw new AdapterError(
      'ADP_FORBIDDEN',
      'The token in MARKBRIDGE_OPERATOR_TOKEN belongs to no operator of the configuration. Nothing was done. Set the token of a listed operator.',
    )
  return toActor(operator)
}

/** Returns the operator to whom a token belongs. Compares all hashes, each in constant time. */
export function findOperator(
  operators: readonly ListedOperator[],
  token: string,
): ListedOperator | undefined {
  const hash = createHash('sha256').update(token).digest()
  const found = operators.filter(({ tokenSha256 }) => isSameHash(tokenSha256, hash))
  return found[0]
}

export function toActor({ name, role, partners, reveal = false }: ListedOperator): Actor {
  return { name, role, partners, reveal }
}

/** Returns the actor for a user of the operating system. Used if the configuration has no operators. */
export function toSystemActor(user: string): Actor {
  return { name: `${SYSTEM}${user}`, role: 'operator', partners: undefined, reveal: true }
}

export function sees({ partners }: Pick<Actor, 'partners'>, partner: string): boolean {
  return partners?.includes(partner) ?? true
}

/** Throws `ADP_FORBIDDEN` if the actor may not see the partner. */
export function expectSees(actor: Actor, partner: string): void {
  if (sees(actor, partner)) return
  throw new AdapterError(
    'ADP_FORBIDDEN',
    `${actor.name} may not see ${partner}, which is not among the partners of this operator. Nothing was done. Ask an operator who has this partner.`,
  )
}

export function mayAct({ role }: Pick<Actor, 'role'>, action: RolloutAction): boolean {
  return allowed[role].includes(action)
}

/** Throws `ADP_FORBIDDEN` if the role of the actor does not allow the action. */
export function expectAllowed({ name, role }: Pick<Actor, 'name' | 'role'>, action: RolloutAction): void {
  if (mayAct({ role }, action)) return
  const roles = (['operator', 'approver'] as const).filter((other) => allowed[other].includes(action))
  throw new AdapterError(
    'ADP_FORBIDDEN',
    `${name} has the role ${role}, which does not allow ${action}. Nothing was done. Ask someone with the role ${roles.join(' or ')}.`,
  )
}

/** Throws `ADP_FORBIDDEN` if the actor proposed the change, or if the configuration no longer allows the proposer to change stages. */
export function expectOther(
  actor: Pick<Actor, 'name' | 'role'>,
  proposer: string,
  operators: readonly ListedOperator[],
): void {
  expectAllowed(actor, 'approve')
  if (isSameName(actor.name, proposer))
    throw new AdapterError(
      'ADP_FORBIDDEN',
      `${proposer} proposed this change. It was not approved, and still waits. Ask another operator to approve it.`,
    )
  // Refuses a proposer who may no longer propose. If the list of operators was added or emptied since, the approver may be the proposer
  // under another name.
  const mayPropose =
    operators.length === 0
      ? proposer.startsWith(SYSTEM)
      : operators.some(({ name, role }) => role === 'operator' && isSameName(name, proposer))
  if (mayPropose) return
  throw new AdapterError(
    'ADP_FORBIDDEN',
    `${proposer}, who proposed this change, may no longer change stages under the configuration. The change was not approved. Have an operator propose the change again.`,
  )
}

function isSameHash(hex: string, hash: Buffer): boolean {
  const listed = Buffer.from(hex, 'hex')
  return listed.byteLength === hash.byteLength && timingSafeEqual(listed, hash)
}

const isSameName = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase()
