import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'

import { isGuid } from '../../../src/odata/index.ts'

const GUID = '0123abcd-89EF-4a5b-8c7d-00ff11ee22dd'

describe('isGuid', () => {
  const rows: [text: string, is: boolean][] = [
    [GUID, true],
    [GUID.toUpperCase(), true],
    ['', false],
    [`${GUID}0`, false],
    [GUID.slice(1), false],
    [`{${GUID}}`, false],
    [GUID.replace('-', '0'), false],
    [GUID.replace('0', '-'), false],
    [GUID.replaceAll('-', ''), false],
  ]
  it.each(rows)('%j: %s', (text, is) => {
    expect(isGuid(text)).toBe(is)
  })
})

test('a guid stays one exactly when a character is replaced by one of its kind', () => {
  const places = fc.nat({ max: GUID.length - 1 })
  const character = fc.oneof(
    fc.nat({ max: 0x17f }).map((code) => String.fromCharCode(code)),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
  )
  fc.assert(
    fc.property(places, character, (at, other) => {
      const text = GUID.slice(0, at) + other + GUID.slice(at + 1)
      const form = /^[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$/
      expect(isGuid(text)).toBe(form.test(text))
    }),
    { numRuns: 2_000 },
  )
})
