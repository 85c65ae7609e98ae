import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isGuid } from '../../src/odata/index.ts'
import { createIdentities } from '../../src/sandbox/identity.ts'

const word = fc.integer({ min: 0, max: 0x7fffffff })

test('createIdentities reads back the two numbers of a GUID, but only with the kind and the seed of that GUID', () => {
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

test.each(['', 'x', '11111111-1111-4111-8111-111111111111', '11111111-1111-1111-1111-11111111111'])(
  'createIdentities reads no numbers from the foreign text %j',
  (text) => expect(createIdentities(1).read('mark', text)).toBeUndefined(),
)
