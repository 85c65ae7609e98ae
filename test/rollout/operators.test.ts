import { createHash } from 'node:crypto'

import { describe, expect, it } from 'vitest'

import {
  expectAllowed,
  expectOther,
  identifyOperator,
  type ListedOperator,
  type OperatorRole,
} from '../../src/rollout/operators.ts'

const listed = (name: string, role: OperatorRole): ListedOperator => ({
  name,
  role,
  tokenSha256: createHash('sha256').update(`token of ${name}`).digest('hex'),
})
const operators = [listed('ann', 'operator'), listed('bert', 'approver'), listed('cleo', 'viewer')]
const refusal = (act: () => void): string => {
  try {
    act()
    return ''
  } catch (error) {
    return error instanceof Error ? error.message : ''
  }
}

describe('identifyOperator', () => {
  it('returns the system user if no operators are configured, even if a token is set', () => {
    expect(identifyOperator([], 'token of ann', 'alice')).toEqual({
      ...{ name: 'os:alice', role: 'operator' },
      reveal: true,
    })
  })

  it.each(operators)('returns the operator $name for the token of $name', ({ name, role }) => {
    expect(identifyOperator(operators, `token of ${name}`, 'alice')).toEqual({ name, role, reveal: false })
  })

  it.each([undefined, 'token of dora', 'ann', operators[0]?.tokenSha256])(
    'refuses the unknown token %s without repeating the token',
    (token) => {
      const message = refusal(() => identifyOperator(operators, token, 'alice'))
      expect(message).toMatch(/MARKBRIDGE_OPERATOR_TOKEN/)
      expect(message).not.toContain(token ?? 'alice')
    },
  )
})

describe('expectAllowed', () => {
  it.each<[OperatorRole, string[]]>([
    ['operator', ['look', 'set', 'dismiss', 'approve', 'back']],
    ['approver', ['look', 'approve', 'back']],
    ['viewer', ['look']],
  ])('allows the role %s only the actions %j', (role, actions) => {
    const all = ['look', 'set', 'dismiss', 'approve', 'back'] as const
    expect(all.filter((action) => refusal(() => expectAllowed({ name: 'x', role }, action)) === '')).toEqual(
      actions,
    )
  })

  it('names the roles that may perform the refused action', () => {
    expect(refusal(() => expectAllowed({ name: 'bert', role: 'approver' }, 'set'))).toMatch(
      /bert.*approver.*set.*operator/,
    )
  })
})

describe('expectOther', () => {
  const ann = { name: 'ann', role: 'operator' } as const
  const bert = { name: 'bert', role: 'approver' } as const
  const alice = { name: 'os:alice', role: 'operator' } as const
  it.each([
    ['accepts an approver of a change that another operator proposed', bert, 'ann', operators, ''],
    ['refuses the operator who proposed the change', ann, 'ann', operators, 'another operator'],
    ['refuses the operator who proposed the change even if the letter case of the name differs', ann, 'Ann', operators, 'another operator'],
    ['refuses a viewer as approver of a change', { name: 'cleo', role: 'viewer' } as const, 'ann', operators, 'which does not allow approve'],
    ['refuses to approve the proposal of a system user once operators are configured', bert, 'os:alice', operators, 'propose the change again'],
    ['refuses to approve the proposal of an operator who has become an approver', ann, 'bert', operators, 'propose the change again'],
    ['refuses to approve the proposal of an operator who was removed', bert, 'dora', operators, 'propose the change again'],
    ['accepts a system user as approver of a change that another system user proposed', alice, 'os:bob', [], ''],
    ['refuses the system user who proposed the change', alice, 'os:alice', [], 'another operator'],
    ['refuses to approve the proposal of an operator once no operators are configured', alice, 'ann', [], 'propose the change again'],
  ])('%s', (_what, actor, proposer, list, message) => {
    expect(refusal(() => expectOther(actor, proposer, list))).toContain(message)
    if (message === '') expect(refusal(() => expectOther(actor, proposer, list))).toBe('')
  }) // prettier-ignore
})
