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
    ['a=%', 'a', 0],
    ['ab=1&c=x%2', 'c', 1],
    ['%24Filter=%ff', '$filter', 0],
    ['a=%41%zz', 'a', 1],
    ['a=%C3%A9+%ff%20%', 'a', 2],
    ['x=1&a=%C3%A9#b', 'a', 1],
    ['x=1&a%=1', undefined, 5],
    ['x=1&a#', undefined, 5],
  ])('refuses the broken encoding of %s in %s at character %i of its value', (query, option, position) => {
    expect(() => splitQuery(query)).toThrow(expect.objectContaining({ option, position, code: 'ADP_QUERY' }))
  })

  test('tells encoded semicolons from others', () => {
    const [first, second] = splitQuery('a=%C3%A9;%3b+x%3Bb;&b=;')
    expect([first?.value, [...(first?.encodedSemicolons ?? [])]]).toEqual(['é;; x;b;', [2, 5]])
    expect(second).not.toHaveProperty('encodedSemicolons')
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
    ['$filter=true&$filter=false', '$filter', 0],
    ['$filter=true&filter=false', '$filter', 0],
    ['filter=true&%24FILTER=false', '$filter', 0],
    ['@a=1&@a=2', '@a', 0],
    ['$fliter=true', '$fliter', 0],
    ['x=1&$levels=2', '$levels', 0],
    ['x=1&top', undefined, 7],
    ['$top=1&$filter=%zz', '$filter', 0],
    ['$top=1&$search=a;b', '$search', 1],
    ['$search=(a;b)', '$search', 2],
    ['$search=a%20AND;b', '$search', 5],
    ['$search=a%3Bb;', '$search', 3],
    ['$search=a#b', '$search', 1],
    ['$expand=A($search=a;b)', '$expand', 12],
    ['$expand=A($search=a%3Bb%20;c)', '$expand', 15],
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

  test.each([
    ['$search=a%3Bb', 'a;b'],
    ['$search=%3Ba%3b%20%3B', ';a; ;'],
    ['$search=%22a;b%22', 'a;b'],
    ['$search=a%23b', 'a#b'],
  ])('takes an encoded semicolon for data: %s', (query, text) => {
    const { search } = parseQuery(query).options
    const texts = search?.kind === 'and' ? search.operands : [search]
    expect(texts.map((term) => (term?.kind === 'term' ? term.text : '')).join(' ')).toBe(text)
  })

  test.each([
    ['$expand=Manager($search=a%3Bb)', 'a;b', undefined],
    ['$expand=Manager($search=a%3Bb;$top=1)', 'a;b', 1],
    ['$expand=Manager($top=1;$search=%3B)', ';', 1],
    ["$expand=Manager($search='a%3Bb';$top=2)", 'a;b', 2],
    // Clients that encode the whole value write the separators so, too (ABNF SEMI): where an option has ended it can be nothing else.
    ['$expand=Manager(%24search%3Da%20%3B%24top%3D1)', 'a ;$top=1', undefined],
    ['$expand=Manager(%24top%3D1%3B%24search%3Da)', 'a', 1],
    ['$expand=Manager(%24search%3D%27a%27%3B%24top%3D3)', 'a', 3],
  ])('and inside nested options: %s', (query, text, top) => {
    const [item] = parseQuery(query).options.expand ?? []
    const { search } = item?.options ?? {}
    const terms = search?.kind === 'and' ? search.operands : [search]
    const words = terms.map((term) => (term?.kind === 'term' || term?.kind === 'incomplete' ? term.text : ''))
    expect([words.join(' '), item?.options.top]).toEqual([text, top])
  })
})
