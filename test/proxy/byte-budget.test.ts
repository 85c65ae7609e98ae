import { expect, it } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import { createByteBudget } from '../../src/proxy/byte-budget.ts'

it('gives what is left, refuses more, and takes back', () => {
  const budget = createByteBudget(10)
  budget.take(4)
  budget.take(6)
  budget.take(0)
  expect(budget.held()).toBe(10)
  expect(() => budget.take(1)).toThrow(AdapterError)
  budget.release(4)
  budget.take(3) // what was refused was not counted
  budget.take(1)
  expect(() => budget.take(1)).toThrow(/^Too many batches are under way/)
})
