import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseExpand, parseSearch } from '../../../src/odata/parse/parse-expand.ts'
import { parseQuery } from '../../../src/odata/parse/parse-query.ts'
import { encodeOption, printExpand, printQuery } from '../../../src/odata/print/print-query.ts'
import { printSearch } from '../../../src/odata/print/print-search.ts'
import { queryOptions, search } from '../arbitraries.ts'
import { withoutPositions } from '../without-positions.ts'
import { runs } from '../../support/long-run.ts'

describe('printQuery', () => {
  test('is undone by parseQuery for every set of options', () => {
    fc.assert(
      fc.property(queryOptions, (options) => {
        const { options: read, custom } = parseQuery(printQuery(options))
        expect(withoutPositions(read)).toEqual(withoutPositions(options))
        expect(custom).toEqual([])
      }),
      { numRuns: runs(500, 5_000) },
    )
  })

  test('leaves the marks of OData readable and encodes what would split the query', () => {
    expect(encodeOption("a/b eq 'x&y=z+ü#'")).toBe("a/b%20eq%20'x%26y=z%2B%C3%BC%23'")
  })
})

test('printSearch is undone by parseSearch', () => {
  fc.assert(
    fc.property(search, (node) => {
      expect(withoutPositions(parseSearch(printSearch(node)))).toEqual(withoutPositions(node))
    }),
    { numRuns: runs(400, 5_000) },
  )
})

test('printExpand writes nested options between semicolons', () => {
  const text = 'A($filter=x eq 1;$top=2;$expand=B/$ref,C/$count),*,NS.T/D($levels=max)'
  expect(printExpand(parseExpand(text))).toBe(text)
})
