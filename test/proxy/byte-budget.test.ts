import { expect, it } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import { createByteBudget } from '../../src/proxy/byte-budget.ts'
import { soleQueue } from '../../src/upstream/index.ts'

const newcomer = { ...soleQueue, isAccepted: () => false }

it('the byte budget gives one client most of the budget, and reserves the rest for other clients', () => {
  let refusals = 0
  const budget = createByteBudget(900, () => (refusals += 1))
  const [first, second] = [budget.open(soleQueue), budget.open(soleQueue)]
  first.take(600)
  second.take(100)
  second.take(0)
  expect(budget.held()).toBe(700)
  expect(() => second.take(113)).toThrow(AdapterError)
  expect(() => second.take(20)).not.toThrow() // The budget did not count the refused bytes.
  const other = budget.open({ ...soleQueue, owner: 'other' })
  other.take(70)
  expect(() => second.take(70)).toThrow(AdapterError)
  first.release()
  first.release()
  expect(budget.held()).toBe(190)
  second.take(10)
  expect(refusals).toBe(2)
})

it('the byte budget limits all clients that V3 has not accepted to a quarter together', () => {
  const budget = createByteBudget(1_000)
  const [first, second] = [budget.open(newcomer), budget.open({ ...newcomer, owner: 'other' })]
  first.take(200)
  second.take(50)
  expect(() => second.take(1)).toThrow(AdapterError)
  expect(() => budget.open(soleQueue).take(600)).not.toThrow()
})
