import { expect, test } from 'vitest'
import { createRateLimit } from '../../../src/sandbox/security/rate-limit.ts'

test('a key may call so often in any second', () => {
  let now = 0
  const count = createRateLimit(2, () => now)
  const at = (ms: number, key = 'a'): number | undefined => {
    now = ms
    return count(key)
  }
  expect([at(0), at(400), at(500), at(500, 'b'), at(999)]).toEqual([undefined, undefined, 1, undefined, 1])
  // The first call has left the window; refused ones never were in it.
  expect([at(1000), at(1100), at(1400)]).toEqual([undefined, 1, undefined])
})

test('without a limit nothing is counted', () => {
  const count = createRateLimit(undefined, () => 0)
  expect(Array.from({ length: 1000 }, () => count('a')).every((wait) => wait === undefined)).toBe(true)
})
