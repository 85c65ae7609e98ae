import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isGuid } from '../../src/odata/index.ts'
import { createIdentities } from '../../src/sandbox/identity.ts'
import { mix32, unmix32 } from '../../src/sandbox/random.ts'

const word = fc.integer({ min: 0, max: 0x7fffffff })

test('mixing is undone by unmixing', () => {
  fc.assert(fc.property(fc.nat(0xffffffff), (value) => unmix32(mix32(value)) === value))
})

test('a guid holds its numbers, for its own kind and seed only', () => {
  fc.assert(
    fc.property(word, word, fc.nat(), (first, second, seed) => {
      const ids = createIdentities(seed)
      const guid = ids.guid('mark', first, second)
      expect(isGuid(guid)).toBe(true)
      expect(ids.read('mark', guid)).toEqual({ first, second })
      expect(ids.read('learner', guid)).toBeUndefined()
      expect(createIdentities(seed + 1).read('mark', guid)).toBeUndefined()
    }),
  )
})

test('ids of a kind are distinct', () => {
  const ids = createIdentities(1)
  const guids = Array.from({ length: 2000 }, (_, index) => ids.guid('learner', index))
  expect(new Set(guids).size).toBe(2000)
})

test.each(['', 'x', '11111111-1111-4111-8111-111111111111', '11111111-1111-1111-1111-11111111111'])(
  'foreign text %j holds no numbers',
  (text) => expect(createIdentities(1).read('mark', text)).toBeUndefined(),
)
