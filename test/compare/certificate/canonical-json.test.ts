import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { canonicalJson, type Json } from '../../../src/compare/certificate/canonical-json.ts'

describe('canonical JSON', () => {
  it('is as RFC 8785 has it', () => {
    // 3.2.2 and 3.2.3 of the RFC.
    const example = {
      numbers: [333333333.33333329, 1e30, 4.5, 2e-3, 0.000000000000000000000000001],
      string: '\u20ac$\u000f\u000aA\'\u0042\u0022\u005c\\"/',
      literals: [null, true, false],
    }
    expect(canonicalJson(example)).toBe(
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    )
    const names = { '\u20ac': 1, '\r': 2, '\ufb33': 3, '1': 4, '\ud83d\ude00': 5, '\u0080': 6, '\u00f6': 7 }
    expect(Object.values(JSON.parse(canonicalJson(names)) as object).sort()).toEqual([1, 2, 3, 4, 5, 6, 7])
    expect(canonicalJson(names)).toBe(
      '{"\\r":2,"1":4,"\u0080":6,"\u00f6":7,"\u20ac":1,"\ud83d\ude00":5,"\ufb33":3}',
    )
  })

  it('is one text for each value, whatever the order of its members', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const json = value as Json
        const turned = JSON.parse(JSON.stringify(json), (_, member: unknown) =>
          typeof member === 'object' && member !== null && !Array.isArray(member)
            ? Object.fromEntries(Object.entries(member).reverse())
            : member,
        ) as Json
        expect(canonicalJson(turned)).toBe(canonicalJson(JSON.parse(JSON.stringify(json)) as Json))
        expect(JSON.parse(canonicalJson(json))).toEqual(JSON.parse(JSON.stringify(json)))
      }),
    )
  })
})
