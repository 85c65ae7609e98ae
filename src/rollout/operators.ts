import { createHash, timingSafeEqual } from 'node:crypto'

import { AdapterError } from '../errors.ts'

/** What a person may do to stages. */
export type OperatorRole = 'operator' | 'approver' | 'viewer'

/**
 * `set` is a step forward or a change at once, `back` the kill switch, `approve` the second pair of eyes. `dismiss` declares a lost instance off,
 * which lets steps forward go on.
 */
export type RolloutAction = 'look' | 'set' | 'dismiss' | 'approve' | 'back'

/** A person of the configuration. */
export interface ListedOperator {
  readonly name: string
  /** SHA-256 of the token in hexadecimal, in lower case. */
  readonly tokenSha256: string
  readonly role: OperatorRole
  /** The only partners that the operator sees and changes; undefined: all. */
  readonly partners?: readonly string[] | undefined
  /** May see the values of a record, with a reason. Default: false. */
  readonly reveal?: boolean
}

/** The person who acts. */
export interface Actor {
  /** The name in the audit trail: `os:<user>` for a user of the system. */
  readonly name: string
  readonly role: OperatorRole
  /** Undefined: all. */
  readonly partners: readonly string[] | undefined
  readonly reveal: boolean
}

/** In front of the name of a user of the system; no name of the configuration has a colon. */
const SYSTEM = 'os:'

/** Who may do what. `back` is the kill switch, so it is open to everybody who may do more than look. */
const allowed: Readonly<Record<OperatorRole, readonly RolloutAction[]>> = {
  operator: ['look', 'set', 'dismiss', 'approve', 'back'],
  approver: ['look', 'approve', 'back'],
  viewer: ['look'],
}

/**
 * Finds the person who acts: without a list the user of the system, with one the operator whose token it is. Errors: `ADP_FORBIDDEN`
 * for a token that is missing or unknown.
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
      'The configuration names operators: set MARKBRIDGE_OPERATOR_TOKEN to the token of one.',
    )
  const operator = findOperator(operators, token)
  if (operator === undefined)
    throw new AdapterError(
      'ADP_FORBIDDEN',
      'The token of MARKBRIDGE_OPERATOR_TOKEN belongs to no operator of the configuration.',
    )
  return toActor(operator)
}

/** The operator whose token it is. All hashes are compared, each in constant time. */
export function findOperator(
  operators: readonly ListedOperator[],
  token: string,
): ListedOperator | undefined {
  const hash = createHash('sha256').update(token).digest()
  const found = operators.filter(({ tokenSha256 }) => isSameHash(tokenSha256, hash))
  return found[0]
}

/** The person that an operator of the configuration is. */
export function toActor({ name, role, partners, reveal = false }: ListedOperator): Actor {
  return { name, role, partners, reveal }
}

/** The user of the system, where the configuration names no operators: whoever can open the journal and its keys. */
export function toSystemActor(user: string): Actor {
  return { name: `${SYSTEM}${user}`, role: 'operator', partners: undefined, reveal: true }
}

/** True for a partner that the actor sees. */
export function sees({ partners }: Pick<Actor, 'partners'>, partner: string): boolean {
  return partners?.includes(partner) ?? true
}

/** Error: `ADP_FORBIDDEN` for a partner that the actor does not see. */
export function expectSees(actor: Actor, partner: string): void {
  if (sees(actor, partner)) return
  throw new AdapterError(
    'ADP_FORBIDDEN',
    `${actor.name} may not see ${partner}: it is not among the partners of this operator.`,
  )
}

/** Error: `ADP_FORBIDDEN` where the role of the actor does not allow the action. */
export function expectAllowed({ name, role }: Pick<Actor, 'name' | 'role'>, action: RolloutAction): void {
  if (allowed[role].includes(action)) return
  const roles = (['operator', 'approver'] as const).filter((other) => allowed[other].includes(action))
  throw new AdapterError(
    'ADP_FORBIDDEN',
    `${name} has the role ${role}, which does not allow ${action}; it takes ${roles.join(' or ')}.`,
  )
}

/**
 * Error: `ADP_FORBIDDEN` where the actor may not approve what `proposer` proposed: it is the same person, or one whom the
 * configuration does not let propose any more.
 */
export function expectOther(
  actor: Pick<Actor, 'name' | 'role'>,
  proposer: string,
  operators: readonly ListedOperator[],
): void {
  expectAllowed(actor, 'approve')
  if (isSameName(actor.name, proposer))
    throw new AdapterError(
      'ADP_FORBIDDEN',
      `${proposer} proposed this change: it takes another operator to approve it.`,
    )
  // A list that was written or emptied since the proposal could have the same person under another name.
  const mayPropose =
    operators.length === 0
      ? proposer.startsWith(SYSTEM)
      : operators.some(({ name, role }) => role === 'operator' && isSameName(name, proposer))
  if (mayPropose) return
  throw new AdapterError(
    'ADP_FORBIDDEN',
    `${proposer}, who proposed this change, may not change stages by this configuration: propose it again.`,
  )
}

function isSameHash(hex: string, hash: Buffer): boolean {
  const listed = Buffer.from(hex, 'hex')
  return listed.byteLength === hash.byteLength && timingSafeEqual(listed, hash)
}

const isSameName = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase()
