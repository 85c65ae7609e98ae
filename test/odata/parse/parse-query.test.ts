import { describe, expect, test } from 'vitest'
import { parseQuery } from '../../../src/odata/parse/parse-query.ts'
import { splitQuery } from '../../../src/odata/parse/split-query.ts'
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

describe('splitQuery', () => {
  test('splits before it decodes', () => {
    expect(splitQuery("$filter=Name%20eq%20'a%26b%3Dc'&x=%C3%A9&y&&z=1=2")).toEqual([
      { name: '$filter', value: "Name eq 'a&b=c'", position: 0 },
      { name: 'x', value: 'é', position: 32 },
      { name: 'y', value: undefined, position: 41 },
      { name: 'z', value: '1=2', position: 44 },
    ])
  })

  test('reads "+" as a blank or, where asked, as itself', () => {
    expect(splitQuery('a=b+c%2B')[0]?.value).toBe('b c+')
    expect(splitQuery('a=b+c%2B', { plus: 'literal' })[0]?.value).toBe('b+c+')
  })

  test('decodes names', () => {
    expect(splitQuery('%24top=1')[0]?.name).toBe('$top')
  })

  test.each([
    ['a=%', 2],
    ['ab=1&c=x%2', 8],
    ['a=%ff', 2],
    ['a=%41%zz', 5],
  ])('refuses the broken encoding of %s at character %i', (query, position) => {
    expect(() => splitQuery(query)).toThrow(expect.objectContaining({ position, code: 'ADP_QUERY' }))
  })
})

describe('parseQuery', () => {
  test('reads every option, with or without $ and in any case', () => {
    const { options, custom } = parseQuery(
      '$Filter=a%20eq%20@p&expand=B&SELECT=C&$orderby=D%20desc&top=5&$skip=10&count=TRUE&$search=x&$skiptoken=t%20u' +
        '&$format=application/json;odata.metadata=none&$schemaversion=*&$index=-1&$deltatoken=d&@p=1&sessionid=9&skiptoken=own',
    )
    expect(options).toMatchObject({
      expand: [{ path: [{ name: 'B' }] }],
      select: [{ path: [{ name: 'C' }] }],
      orderby: [{ direction: 'desc' }],
      top: 5,
      skip: 10,
      count: true,
      search: { kind: 'term', text: 'x' },
      skiptoken: 't u',
      deltatoken: 'd',
      format: 'application/json;odata.metadata=none',
      schemaversion: '*',
      index: -1,
    })
    expect(options.filter && outline(options.filter)).toBe('(eq a alias:p)')
    expect([...(options.aliases ?? [])].map(([name, value]) => [name, outline(value)])).toEqual([
      ['p', 'Int32:1'],
    ])
    expect(custom.map(({ name, value }) => [name, value])).toEqual([
      ['sessionid', '9'],
      ['skiptoken', 'own'],
    ])
  })

  test('reads nothing from nothing', () => {
    expect(parseQuery('')).toEqual({ options: {}, custom: [] })
  })

  test.each([
    ['$filter=true&$filter=false', undefined, 13],
    ['$filter=true&filter=false', undefined, 13],
    ['filter=true&%24FILTER=false', undefined, 12],
    ['@a=1&@a=2', undefined, 5],
    ['$fliter=true', undefined, 0],
    ['x=1&$levels=2', undefined, 4],
    ['$top', undefined, 4],
    ['$top=x', '$top', 0],
    ['$top=5&filter=a%20eq', '$filter', 2],
    ['$expand=A($top=x)', '$expand', 7],
    ['@p=(1', '@p', 2],
    ['$format=', '$format', 0],
    ['$count=1', '$count', 0],
    ['$top=5x', '$top', 1],
  ])('refuses %s, naming %s and character %i', (query, option, position) => {
    expect(faultIn(query)).toEqual({ option, position })
  })

  test('names the option in the location that a reply shows', () => {
    expect(() => parseQuery('$filter=a%20eq')).toThrow(
      expect.objectContaining({ at: { offset: 2, path: '$filter' }, code: 'ADP_QUERY' }),
    )
  })
})
