import { expect, test } from 'vitest'
import { createClock } from '../../src/sandbox/clock.ts'

test('a clock stands still at its instant until it is let go', () => {
  const clock = createClock(1000)
  expect(clock.now()).toBe(1000)
  clock.fix(2000)
  expect(clock.now()).toBe(2000)
  const before = Date.now()
  clock.fix(undefined)
  expect(clock.now()).toBeGreaterThanOrEqual(before)
})

test('a clock without an instant follows the machine', () => {
  const before = Date.now()
  expect(createClock().now()).toBeGreaterThanOrEqual(before)
})
