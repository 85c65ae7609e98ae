import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { createQuota, NEWCOMERS, type Quota } from '../../src/upstream/fair-queue.ts'

/** Takes places for a holder as long as the quota allows, and returns the number of places. */
function fill(quota: Quota, holder: string): number {
  let count = 0
  for (; quota.mayTake(holder); count += 1) quota.take(holder)
  return count
}

describe('a quota', () => {
  it.each([
    [1, 1],
    [3, 3],
    [4, 3],
    [8, 7],
    [32, 28],
    [1_024, 910],
  ])('of %i places gives a single holder at most %i', (capacity, own) => {
    expect(fill(createQuota(capacity), 'a')).toBe(own)
  })

  it('gives all clients that V3 has not accepted a quarter in common, but at least one place', () => {
    expect([1, 4, 32].map((capacity) => fill(createQuota(capacity), NEWCOMERS))).toEqual([1, 1, 8])
  })

  it('of four or more places always leaves a place for a holder that has none', () => {
    fc.assert(
      fc.property(fc.integer({ min: 4, max: 200 }), fc.array(fc.boolean()), (capacity, steps) => {
        const quota = createQuota(capacity)
        let own = 0
        for (const isTake of steps) {
          if (isTake && quota.mayTake('a')) {
            quota.take('a')
            own += 1
          } else if (!isTake && own > 0) {
            quota.release('a')
            own -= 1
          }
          expect(quota.mayTake('b')).toBe(true)
          expect(quota.held()).toBe(own)
        }
      }),
    )
  })

  it('converges to equal shares while two holders take and release in turns', () => {
    const quota = createQuota(34)
    const held = new Map([['a', fill(quota, 'a')], ['b', 0]]) // prettier-ignore
    for (let round = 0; round < 40; round += 1) {
      const [most] = [...held].sort(([, one], [, other]) => other - one)
      quota.release(most?.[0] ?? '')
      held.set(most?.[0] ?? '', (most?.[1] ?? 0) - 1)
      for (const holder of ['b', 'a']) held.set(holder, (held.get(holder) ?? 0) + fill(quota, holder))
    }
    const [a = 0, b = 0] = held.values()
    expect(Math.abs(a - b)).toBeLessThan(3)
    expect(a + b).toBeGreaterThan(29)
  })
})

it('a quota applies a new capacity immediately, and lets holders keep their places', () => {
  const quota = createQuota(100)
  quota.take('a', 60)
  quota.resize(50)
  expect([quota.mayTake('b'), quota.held()]).toEqual([false, 60])
  quota.release('a', 20)
  expect([quota.mayTake('b', 10), quota.mayTake('b', 11)]).toEqual([true, false])
  quota.resize(200)
  expect([quota.mayTake('b', 100), quota.held()]).toEqual([true, 40])
  quota.release('a', 40)
  expect(quota.held()).toBe(0)
})
