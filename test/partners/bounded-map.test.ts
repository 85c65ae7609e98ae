import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { BoundedMap } from '../../src/partners/bounded-map.ts'

const LIMIT = 4
const keys = fc.integer({ min: 0, max: 9 })
const calls = fc.array(fc.tuple(fc.constantFrom('get', 'set', 'delete'), keys), { maxLength: 300 })

describe('BoundedMap', () => {
  test('evicts the least recently used entry after any sequence of reads, writes and deletions', () => {
    fc.assert(
      fc.property(calls, (list) => {
        const map = new BoundedMap<number, number>(LIMIT)
        // The keys, most recently used last.
        let model: number[] = []
        for (const [call, key] of list) {
          if (call === 'get') map.get(key)
          else if (call === 'set') map.set(key, key)
          else map.delete(key)
          const isKept = call === 'set' || (call === 'get' && model.includes(key))
          model = [...model.filter((one) => one !== key), ...(isKept ? [key] : [])].slice(-LIMIT)
          for (let one = 0; one <= 9; one += 1) expect(map.has(one)).toBe(model.includes(one))
        }
      }),
    )
  })
})
