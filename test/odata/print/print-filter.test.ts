import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { parseFilter } from '../../../src/odata/parse/parse-query.ts'
import { printFilter } from '../../../src/odata/print.ts'
import { runs } from '../../support/long-run.ts'
import { expression } from '../arbitraries.ts'
import { withoutPositions } from '../without-positions.ts'

describe('printFilter', () => {
  test('prints every tree so that parseFilter returns the same tree', () => {
    fc.assert(
      fc.property(expression, (tree) => {
        expect(withoutPositions(parseFilter(printFilter(tree)))).toEqual(withoutPositions(tree))
      }),
      { numRuns: runs(1_000, 10_000) },
    )
  })

  test.each([
    ['a eq 1 and b eq 2 or not c', 'a eq 1 and b eq 2 or not c'],
    ['((a eq 1) and (b eq 2)) or (not (c))', 'a eq 1 and b eq 2 or not c'],
    ['a and (b or c)', 'a and (b or c)'],
    ['(a and b) and c', '(a and b) and c'],
    ['(a sub b) sub c', 'a sub b sub c'],
    ['a sub (b sub c)', 'a sub (b sub c)'],
    ['not (a eq b)', 'not (a eq b)'],
    ['not (x in (1,2))', 'not x in (1,2)'],
    ['(not x) in (1,2)', '(not x) in (1,2)'],
    ['-(1)', '-(1)'],
    ['- -1', '--1'],
    ["NAME EQ 'O''Neil' AND Startswith( Name , 'O')", "NAME eq 'O''Neil' and startswith(Name,'O')"],
    ['Notes/any( n : n/Confidential )', 'Notes/any(n:n/Confidential)'],
    [
      "G(ExternalID=01234567-89ab-cdef-0123-456789abcdef,T=K'Y')/N",
      "G(ExternalID=01234567-89ab-cdef-0123-456789abcdef,T=K'Y')/N",
    ],
  ])('prints the filter %s with as few parentheses as possible', (text, printed) => {
    expect(printFilter(parseFilter(text))).toBe(printed)
  })
})
