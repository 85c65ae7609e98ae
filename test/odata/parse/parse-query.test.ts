import { describe, expect, test } from 'vitest'

import { parseQuery } from '../../../src/odata/parse/parse-query.ts'
import { QueryError } from '../../../src/odata/query-error.ts'
import { outline } from '../outline.ts'

function faultIn(query: string): { readonly option: string | undefined; readonly position: number } {
  try {
    parseQuery(query)
  } catch (error) {
    if (error instanceof QueryError) return { option: error.option, position: error.position }
    throw error
  }
  throw new TypeError('Expected a QueryError')
}

test.each([
  ['%24top=1', { top: 1 }],
  ['x=1&&y&$top=1', { top: 1 }],
  ['$skiptoken=b+c%2B%26%3D%3Bd=e', { skiptoken: 'b c+&=;d=e' }],
])('parseQuery splits the query %s before it decodes the options', (query, options) => {
  expect(parseQuery(query)).toEqual(options)
})

test.each([
  ['a=%', 'a', 0],
  ['ab=1&c=x%2', 'c', 1],
  ['%24Filter=%ff', '$filter', 0],
  ['a=%41%zz', 'a', 1],
  ['a=%C3%A9+%ff%20%', 'a', 2],
  ['x=1&a=%C3%A9#b', 'a', 1],
  ['a=b%2#', 'a', 1],
  ['x=1&a%=1', undefined, 5],
  ['x=1&a#', undefined, 5],
])(
  'parseQuery rejects the malformed encoding of %s, and names the option %s and character %i in the error',
  (query, option, position) => {
    expect(faultIn(query)).toEqual({ option, position })
  },
)

describe('parseQuery', () => {
  test('parses every option in any letter case, with or without $', () => {
    const options = parseQuery(
      '$Filter=a%20eq%20@p&expand=B&SELECT=C&$orderby=D%20desc&top=5&$skip=10&count=TRUE&$skiptoken=t%20u' +
        '&$format=application/json;odata.metadata=none&@p=1&sessionid=9&skiptoken=own',
    )
    expect(options).toMatchObject({
      expand: [{ path: [{ name: 'B' }] }],
      select: [{ path: [{ name: 'C' }] }],
      orderby: [{ direction: 'desc' }],
      top: 5,
      skip: 10,
      count: true,
      skiptoken: 't u',
      format: 'application/json;odata.metadata=none',
    })
    expect(options.filter && outline(options.filter)).toBe('(eq a alias:p)')
    expect([...(options.aliases ?? [])].map(([name, value]) => [name, outline(value)])).toEqual([
      ['p', 'Int32:1'],
    ])
  })

  test('returns no options for an empty query', () => {
    expect(parseQuery('')).toEqual({})
  })

  test.each([
    ['$filter=true&$filter=false', '$filter', 0],
    ['$filter=true&filter=false', '$filter', 0],
    ['filter=true&%24FILTER=false', '$filter', 0],
    ['@a=1&@a=2', '@a', 0],
    ['$fliter=true', '$fliter', 0],
    ['x=1&$levels=2', '$levels', 0],
    ['$search=x', '$search', 0],
    ['$deltatoken=x', '$deltatoken', 0],
    ['x=1&top', undefined, 7],
    ['$top=1&$filter=%zz', '$filter', 0],
    ['$search=a#b', '$search', 1],
    ['$expand=A($search=a;b)', '$expand', 2],
    ['$top=x', '$top', 0],
    ['$top=5&filter=a%20eq', '$filter', 2],
    ['$expand=A($top=x)', '$expand', 7],
    ['@p=(1', '@p', 2],
    ['$format=', '$format', 0],
    ['$count=1', '$count', 0],
    ['$top=5x', '$top', 1],
  ])('rejects %s, and names %s and character %i in the error', (query, option, position) => {
    expect(faultIn(query)).toEqual({ option, position })
  })

  test('names the option in the location of an error', () => {
    expect(() => parseQuery('$filter=a%20eq')).toThrow(
      expect.objectContaining({ at: { offset: 2, path: '$filter' }, code: 'ADP_QUERY' }),
    )
  })

  test('treats a semicolon as data in a top-level option and as a separator in a nested option', () => {
    expect(parseQuery('$skiptoken=a%3Bb;').skiptoken).toBe('a;b;')
    // Clients that encode the whole value encode the separators too (ABNF SEMI).
    const [item] = parseQuery('$expand=Manager(%24skip%3D1%3B%24top%3D3)').expand ?? []
    expect(item?.options).toEqual({ skip: 1, top: 3 })
  })
})
