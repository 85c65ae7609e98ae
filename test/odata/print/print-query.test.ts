import fc from 'fast-check'
import { expect, test } from 'vitest'

import { parseExpand, parseQuery } from '../../../src/odata/parse/parse-query.ts'
import { printQuery } from '../../../src/odata/print.ts'
import { runs } from '../../support/long-run.ts'
import { queryOptions } from '../arbitraries.ts'
import { withoutPositions } from '../without-positions.ts'

test('printQuery prints every set of options so that parseQuery returns the same options', () => {
  fc.assert(
    fc.property(queryOptions, (options) => {
      expect(withoutPositions(parseQuery(printQuery(options)))).toEqual(withoutPositions(options))
    }),
    { numRuns: runs(500, 5_000) },
  )
})

test('printQuery leaves the punctuation of OData readable, and encodes characters that would end an option', () => {
  expect(printQuery({ skiptoken: "a/b eq 'x&y=z+ü#'" })).toBe("$skiptoken=a/b%20eq%20'x%26y=z%2B%C3%BC%23'")
})

test('printQuery separates nested options by semicolons', () => {
  const text = 'A($filter=x eq 1;$top=2;$expand=B/$ref,C/$count),*,NS.T/D($levels=max)'
  expect(printQuery({ expand: parseExpand(text) })).toBe(`$expand=${text.replaceAll(' ', '%20')}`)
})
