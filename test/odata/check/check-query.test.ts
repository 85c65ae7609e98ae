import { describe, expect, test } from 'vitest'

import { checkQuery } from '../../../src/odata/check/check-query.ts'
import { parseQuery } from '../../../src/odata/parse/parse-query.ts'
import { QueryError } from '../../../src/odata/query-error.ts'
import type { Selection } from '../../../src/odata/typed/typed-ast.ts'
import { sampleIndex } from '../sample-model.ts'

const check = (query: string) => checkQuery(parseQuery(query), 'Sample.Thing', sampleIndex)

describe('checkQuery', () => {
  test('checks every level', () => {
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
          path: ['Parts'],
          property: { name: 'Parts', contained: true },
          target: { name: 'Sample.Part' },
          mode: 'entities',
          levels: 1,
          query: { filter: { kind: 'compare' }, select: new Map([['Name', 'all']]), top: 2, count: false },
        },
      ],
    })
  })

  test('asks for nothing where nothing is given', () => {
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
  ])('%s selects %s', (query, selected) => {
    const textOf = (selection: Selection): string =>
      [...selection].map(([name, part]) => (part === 'all' ? name : `${name}{${textOf(part)}}`)).join()
    const { select } = check(query)
    expect(select && textOf(select)).toBe(selected)
  })

  test.each([
    ['$expand=*', 'Parts entities, Maker entities'],
    ['$expand=*/$ref', 'Parts references, Maker references'],
    ['$expand=*,Parts/$count', 'Parts count, Maker entities'],
    ['$expand=Parts/$count,*', 'Parts count, Maker entities'],
    ['$expand=Sample.Thing/Maker', 'Maker entities'],
  ])('%s expands %s', (query, expanded) => {
    const { expand } = check(query)
    expect(expand.map(({ path, mode }) => `${path.join('/')} ${mode}`).join(', ')).toBe(expanded)
  })

  test('keeps levels and nested aliases', () => {
    expect(check('$expand=Parts($levels=max;$filter=Price eq @p;@p=7)&@p=8').expand[0]).toMatchObject({
      levels: 'max',
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
    ['$select=S.Changes(a,b)', '$select', 0],
    ['$select=Tags($top=1)', '$select', 0],
    ['$expand=Owner', '$expand', 0],
    ['$expand=Owner/Parts', '$expand', 6],
    ['$expand=Name/Parts', '$expand', 0],
    ['$expand=$value', '$expand', 0],
    ['$expand=Parts,Parts', '$expand', 6],
    ['$expand=Maker/$count', '$expand', 0],
    ['$expand=Parts($filter=Nmae eq 1)', '$expand', 14],
    ['$compute=1 add 1 as Two', '$compute', 0],
    ['$search=x', '$search', 0],
    ['$index=1', '$index', 0],
    ['$deltatoken=x', '$deltatoken', 0],
  ])('refuses %s, naming %s and character %i', (query, option, position) => {
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
