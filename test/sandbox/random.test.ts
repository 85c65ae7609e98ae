import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createRandom } from '../../src/sandbox/random.ts'

const draw = (seed: number, name: string): number[] => {
  const random = createRandom(seed, name)
  return Array.from({ length: 50 }, () => random.next())
}

test('a stream depends on its seed and its name, and on nothing else', () => {
  expect(draw(1, 'a')).toEqual(draw(1, 'a'))
  expect(draw(1, 'a')).not.toEqual(draw(2, 'a'))
  expect(draw(1, 'a')).not.toEqual(draw(1, 'b'))
  // Fixtures hold what the seed gives: the numbers must never change.
  expect(
    draw(1, 'a')
      .slice(0, 3)
      .map((value) => value.toFixed(6)),
  ).toEqual(['0.327580', '0.593497', '0.182657'])
})

test('numbers, items and chances stay in their bounds', () => {
  fc.assert(
    fc.property(fc.nat(), fc.integer({ min: 1, max: 1000 }), (seed, bound) => {
      const random = createRandom(seed, 'x')
      const below = Array.from({ length: 20 }, () => random.below(bound))
      expect(below.every((value) => Number.isInteger(value) && value >= 0 && value < bound)).toBe(true)
      expect(['a', 'b']).toContain(random.pick(['a', 'b']))
      expect([random.chance(0), random.chance(1)]).toEqual([false, true])
    }),
  )
})
