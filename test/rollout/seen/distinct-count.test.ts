import { randomUUID } from 'node:crypto'

import { expect, it } from 'vitest'

import {
  countText,
  emptyCount,
  estimateOf,
  formatCount,
  mergedCount,
  parseCount,
} from '../../../src/rollout/seen/distinct-count.ts'

const countOf = (texts: readonly string[]): Uint8Array => {
  const count = emptyCount()
  for (const text of texts) countText(count, text)
  return count
}

it.each([0, 1, 3, 30, 500, 5_000, 100_000])('counts %i different texts, each as often as it comes', (n) => {
  const keys = Array.from({ length: n }, () => `${randomUUID()} ${randomUUID()}`)
  const estimate = estimateOf(countOf([...keys, ...keys]))
  expect(Math.abs(estimate - n)).toBeLessThanOrEqual(Math.max(n < 50 ? 2 : 0, 0.15 * n))
})

it('counts texts that differ in one character, as numbered schools do', () => {
  const schools = Array.from({ length: 2_000 }, (_, index) => `school-${index}`)
  expect(Math.abs(estimateOf(countOf(schools)) - 2_000)).toBeLessThan(300)
})

it('merges counts without counting twice what is in both', () => {
  const [one, other] = [0, 500].map((from) =>
    countOf(Array.from({ length: 1_000 }, (_, index) => `key ${from + index}`)),
  )
  const merged = mergedCount(one ?? emptyCount(), other ?? emptyCount())
  expect(Math.abs(estimateOf(merged) - 1_500)).toBeLessThan(200)
  expect(parseCount(formatCount(merged))).toEqual(merged)
  expect(parseCount('AAAA')).toBeUndefined()
})
