import { describe, expect, test } from 'vitest'

import { checkQuery } from '../../../src/odata/check/check-query.ts'
import { parseQuery } from '../../../src/odata/parse/parse-query.ts'
import { QueryError } from '../../../src/odata/query-error.ts'
import type { Selection } from '../../../src/odata/typed/typed-ast.ts'
import { sampleIndex } from '../sample-model.ts'

const check = (query: string) => checkQuery(parseQuery(query), 'Sample.Thing', sampleIndex, { now: 0 })

describe('checkQuery', () => {
  test('checks the options at every level of $expand', () => {
    const query = check(
      '$filter=Open&$orderby=Name desc&$expand=Parts($filter=Price gt 1;$select=Name;$top=2)&$count=true&$skip=3',
    )
    expect(query).toMatchObject({
      filter: { kind: 'member', path: ['Open'] },
      orderby: [{ expression: { kind: 'member', path: ['Name'] }, direction: 'desc' }],
      skip: 3,
      count: true,
      expand: [
        {
          property: { name: 'Parts', contained: true },
          target: { name: 'Sample.Part' },
          isCount: false,
          query: { filter: { kind: 'compare' }, select: new Map([['Name', 'all']]), top: 2, count: false },
        },
      ],
    })
  })

  test('returns an empty query if no option is given', () => {
    expect(check('')).toEqual({ orderby: [], expand: [], count: false })
  })

  test.each([
    ['$select=Name,Owner/Type', 'Name,Owner{Type}'],
    ['$select=Owner($select=Type,ExternalID)', 'Owner{Type,ExternalID}'],
    ['$select=Owner/Type,Owner', 'Owner'],
    ['$select=Owner,Owner/Type', 'Owner'],
    ['$select=Owner/*', 'Owner'],
    ['$select=Sample.Thing/Name,Parts', 'Name,Parts'],
    ['$select=*', undefined],
    ['$select=Name,*', undefined],
  ])('resolves %s to the selection %s', (query, selected) => {
    const textOf = (selection: Selection): string =>
      [...selection].map(([name, part]) => (part === 'all' ? name : `${name}{${textOf(part)}}`)).join()
    const { select } = check(query)
    expect(select && textOf(select)).toBe(selected)
  })

  test.each([
    ['$expand=*', 'Parts, Maker'],
    ['$expand=*,Parts/$count', 'Parts count, Maker'],
    ['$expand=Parts/$count,*', 'Parts count, Maker'],
    ['$expand=Sample.Thing/Maker', 'Maker'],
  ])('resolves %s to the expansion %s', (query, expanded) => {
    const { expand } = check(query)
    const names = expand.map(({ property, isCount }) => `${property.name}${isCount ? ' count' : ''}`)
    expect(names.join(', ')).toBe(expanded)
  })

  test('keeps the parameter aliases of a nested $expand', () => {
    expect(check('$expand=Parts($levels=1;$filter=Price eq @p;@p=7)&@p=8').expand[0]).toMatchObject({
      query: { filter: { right: { value: 7 } } },
    })
  })

  test.each([
    ['$filter=Nmae eq 1', '$filter', 0],
    ['$orderby=Name,Owner', '$orderby', 5],
    ['$orderby=Tags', '$orderby', 0],
    ['$select=Nmae', '$select', 0],
    ['$select=Owner/Nmae', '$select', 6],
    ['$select=Name/Type', '$select', 0],
    ['$expand=Owner', '$expand', 0],
    ['$expand=Owner/Parts', '$expand', 0],
    ['$expand=Name/Parts', '$expand', 0],
    ['$expand=*/$ref', '$expand', 0],
    ['$expand=Maker,Parts($levels=max)', '$expand', 6],
    ['$expand=Parts,Parts', '$expand', 6],
    ['$expand=Maker/$count', '$expand', 0],
    ['$expand=Parts($filter=Nmae eq 1)', '$expand', 14],
  ])('rejects %s, and names %s and character %i in the error', (query, option, position) => {
    const fault = (() => {
      try {
        return check(query)
      } catch (error) {
        return error
      }
    })()
    expect(fault).toBeInstanceOf(QueryError)
    expect(fault).toMatchObject({ position, option })
  })
})
