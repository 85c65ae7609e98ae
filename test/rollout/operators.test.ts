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
  it('takes the user of the system where none are listed, whatever token is set', () => {
    expect(identifyOperator([], 'token of ann', 'alice')).toEqual({
      ...{ name: 'os:alice', role: 'operator' },
      reveal: true,
    })
  })

  it.each(operators)('knows $name by the token', ({ name, role }) => {
    expect(identifyOperator(operators, `token of ${name}`, 'alice')).toEqual({ name, role, reveal: false })
  })

  it.each([undefined, 'token of dora', 'ann', operators[0]?.tokenSha256])('refuses the token %s', (token) => {
    const message = refusal(() => identifyOperator(operators, token, 'alice'))
    expect(message).toMatch(/MARKBRIDGE_OPERATOR_TOKEN/)
    expect(message).not.toContain(token ?? 'alice')
  })
})

describe('expectAllowed', () => {
  it.each<[OperatorRole, string[]]>([
    ['operator', ['look', 'set', 'dismiss', 'approve', 'back']],
    ['approver', ['look', 'approve', 'back']],
    ['viewer', ['look']],
  ])('lets %s do %j', (role, actions) => {
    const all = ['look', 'set', 'dismiss', 'approve', 'back'] as const
    expect(all.filter((action) => refusal(() => expectAllowed({ name: 'x', role }, action)) === '')).toEqual(
      actions,
    )
  })

  it('names the roles that it takes', () => {
    expect(refusal(() => expectAllowed({ name: 'bert', role: 'approver' }, 'set'))).toBe(
      'bert has the role approver, which does not allow set; it takes operator.',
    )
  })
})

describe('expectOther', () => {
  const ann = { name: 'ann', role: 'operator' } as const
  const bert = { name: 'bert', role: 'approver' } as const
  const alice = { name: 'os:alice', role: 'operator' } as const
  it.each([
    ['another operator', bert, 'ann', operators, ''],
    ['the same one', ann, 'ann', operators, 'it takes another operator'],
    ['the same one in capitals', ann, 'Ann', operators, 'it takes another operator'],
    ['a viewer', { name: 'cleo', role: 'viewer' } as const, 'ann', operators, 'which does not allow approve'],
    ['a change by a user of before the list', bert, 'os:alice', operators, 'propose it again'],
    ['a change by one who may only approve now', ann, 'bert', operators, 'propose it again'],
    ['a change by one who is gone', bert, 'dora', operators, 'propose it again'],
    ['another user of the system', alice, 'os:bob', [], ''],
    ['the same user of the system', alice, 'os:alice', [], 'it takes another operator'],
    ['a change from a list that is gone', alice, 'ann', [], 'propose it again'],
  ])('%s', (_what, actor, proposer, list, message) => {
    expect(refusal(() => expectOther(actor, proposer, list))).toContain(message)
    if (message === '') expect(refusal(() => expectOther(actor, proposer, list))).toBe('')
  })
})
