import { describe, expect, test } from 'vitest'

import { parseExpand, parseQuery } from '../../../src/odata/parse/parse-query.ts'
import { faultOf } from '../fault.ts'
import { outline } from '../outline.ts'
import { withoutPositions } from '../without-positions.ts'

const optionOf = (name: string, text: string) => parseQuery(`$${name}=${encodeURIComponent(text)}`)
const parseSelect = (text: string) => optionOf('select', text).select ?? []
const parseOrderBy = (text: string) => optionOf('orderby', text).orderby ?? []
const property = (name: string) => ({ kind: 'property', name })

describe('parseExpand', () => {
  test('parses nested options, references, counts and stars', () => {
    const items = parseExpand(
      'A($expand=B($levels=max);$top=2;$skip=1;$count=true),C/$ref,D/$count($filter=true),*,NS.T/E/F($select=G)',
    )
    expect(withoutPositions(items)).toEqual([
      {
        path: [property('A')],
        options: {
          expand: [{ path: [property('B')], options: { levels: 'max' } }],
          top: 2,
          skip: 1,
          count: true,
        },
      },
      { path: [property('C')], suffix: '$ref', options: {} },
      {
        path: [property('D')],
        suffix: '$count',
        options: { filter: { kind: 'literal', type: 'Edm.Boolean', value: 'true' } },
      },
      { path: [{ kind: 'star', name: '*' }], options: {} },
      {
        path: [{ kind: 'typeCast', name: 'NS.T' }, property('E'), property('F')],
        options: { select: [{ path: [property('G')] }] },
      },
    ])
  })

  test('accepts option names without $ and spaces after commas, and records the position of each item', () => {
    const [first, second] = parseExpand('A(expand=B;filter=C eq 1), D')
    expect(Object.keys(first?.options ?? {})).toEqual(['expand', 'filter'])
    expect(second).toEqual({ path: [{ ...property('D'), position: 27 }], options: {}, position: 27 })
  })

  test('keeps the parameter aliases of an item', () => {
    const aliases = parseExpand('A($filter=B eq @x;@x=1;@y=2)')[0]?.options.aliases
    expect([...(aliases ?? [])].map(([name, value]) => [name, outline(value)])).toEqual([
      ['x', 'Int32:1'],
      ['y', 'Int32:2'],
    ])
  })

  test.each([
    ['', 0, 'Expected a navigation property, "*" or "$ref"'],
    ['A,', 2, 'Expected a navigation property, "*" or "$ref"'],
    ['A(', 2, 'Expected a query option'],
    ['A()', 2, 'Expected a query option'],
    ['A($top=1', 8, 'Expected ")"'],
    ['A($top=-1)', 7, 'Expected a number from 0'],
    ['A($top=99999999999999999999)', 7, 'The number is too large'],
    ['A($top=1;$top=2)', 9, 'The option is given twice'],
    ['A(top=1;$top=2)', 8, 'The option is given twice'],
    ['A(@x=1;@x=2)', 7, 'The alias is given twice'],
    ['A($format=json)', 2, 'The option is not allowed here'],
    ['A($levels=0)', 10, 'Expected a number from 1 or "max"'],
    ['A($count=yes)', 9, 'Expected true or false'],
    ['A/$ref($expand=B)', 7, 'The option is not allowed here'],
    ['A/$count($top=1)', 9, 'The option is not allowed here'],
    ['*($top=1)', 2, 'The option is not allowed here'],
    ['NS.T', 4, 'Expected "/"'],
    ['A/*/B', 3, 'Expected "," or the end'],
    ['A.*', 2, 'Expected a name after "."'],
    ['A($search=x)', 2, 'The option is not allowed here'],
    ['A(top=1;compute=B as C)', 8, 'The option is not allowed here'],
    ['A B', 2, 'Expected "," or the end'],
  ])('rejects $expand=%j at character %i', (text, position, message) => {
    expect(faultOf(() => parseExpand(text))).toEqual({ message, position })
  })

  test('rejects items that are nested 2,000 levels deep', () => {
    expect(faultOf(() => parseExpand('A($expand='.repeat(2_000)))).toEqual({
      message: 'The query is nested more than 100 levels deep',
      position: 1001,
    })
  })
})

describe('parseQuery, for $select', () => {
  test('parses stars, paths and nested selections', () => {
    expect(withoutPositions(parseSelect('*,A/B,NS.T/C($select=D,E)'))).toEqual([
      { path: [{ kind: 'star', name: '*' }] },
      { path: [property('A'), property('B')] },
      {
        path: [{ kind: 'typeCast', name: 'NS.T' }, property('C')],
        select: [{ path: [property('D')] }, { path: [property('E')] }],
      },
    ])
  })

  test.each([
    ['A,', 2],
    ['A/', 2],
    ['*/A', 1],
    ['A($expand=B)', 2],
    ['A(B,)', 2],
    ['A($top=1)', 2],
    ['NS.Find(x)', 8],
    ['A-B', 1],
  ])('rejects $select=%j at character %i', (text, position) => {
    expect(faultOf(() => parseSelect(text)).position).toBe(position)
  })
})

describe('parseQuery, for $orderby', () => {
  test.each([
    ['Name', ['Name asc']],
    ['Name DESC, a eq b asc,length(c)', ['Name desc', '(eq a b) asc', '(length c) asc']],
    ['desc desc', ['desc desc']],
    ['Name\tasc', ['Name asc']],
  ])('parses $orderby=%j', (text, expected) => {
    const items = parseOrderBy(text).map(({ expression, direction }) => `${outline(expression)} ${direction}`)
    expect(items).toEqual(expected)
  })

  test.each([
    ['Name up', 5],
    ['Name asc desc', 9],
    ['', 0],
  ])('rejects $orderby=%j at character %i', (text, position) => {
    expect(faultOf(() => parseOrderBy(text)).position).toBe(position)
  })
})
