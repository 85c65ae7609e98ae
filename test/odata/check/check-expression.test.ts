import { describe, expect, test } from 'vitest'

import { checkFilter } from '../../../src/odata/check/check-expression.ts'
import { parseFilter } from '../../../src/odata/parse/parse-query.ts'
import { faultOf } from '../fault.ts'
import { sampleIndex } from '../sample-model.ts'

const guid = '01234567-89ab-cdef-0123-456789abcdef'

const check = (text: string, settings = {}) =>
  checkFilter(parseFilter(text), 'Sample.Thing', sampleIndex, { now: 1000, ...settings })

describe('checkFilter', () => {
  test('resolves names, promotes literals and gives every node a type', () => {
    const node = (position: number, family: string, name: string, members: object) => ({
      ...{ position, type: { family, name, collection: false } },
      ...members,
    })
    const member = (...path: string[]) => ({ kind: 'member', variable: 0, path })
    const constant = (value: unknown) => ({ kind: 'constant', value })
    const boolean = (position: number, members: object) => node(position, 'boolean', 'Edm.Boolean', members)
    const left = node(0, 'guid', 'Edm.Guid', member('Owner', 'ExternalID'))
    const right = node(20, 'guid', 'Edm.Guid', constant(guid))
    const kind = node(61, 'enum', 'Sample.Kind', member('Kind'))
    const fancy = node(69, 'enum', 'Sample.Kind', constant(1))
    expect(check(`Owner/ExternalID eq ${guid.toUpperCase()} and Kind ne 'Fancy'`)).toEqual(
      boolean(0, {
        kind: 'and',
        operands: [
          boolean(0, { kind: 'compare', operator: 'eq', left, right }),
          boolean(61, { kind: 'compare', operator: 'ne', left: kind, right: fancy }),
        ],
      }),
    )
  })

  test.each([
    'Size eq 4.0 and Weight gt 3 and 1e3 ge Size',
    'Open',
    'null',
    'Name eq null and Owner ne null and Maker eq null',
    "Kind eq S.Kind'Fancy' or Kind eq Kind'Fancy' or Kind eq Other.Name.Kind'Fancy' or Kind eq Sample.Kind'1'",
    "Marks has S.Marks'Red' and Marks eq 'Blue'",
    "Lasts gt 'PT1H' and Lasts eq duration'PT1H'",
    'Created add Lasts gt 2024-02-29T12:00:00Z and Created sub Created eq Lasts',
    'Day sub Day gt Lasts and Day add Lasts eq 2024-02-29',
    'Lasts mul 2 gt Lasts div 3 and -Lasts lt 2 mul Lasts',
    "Tags/any(t:t eq 'x') and 'x' in Tags and Tags/$count gt 1",
    'Parts/any(p:p/Price gt $it/Size and p/Parts/all(q:q/Name eq p/Name))',
    'Parts/$filter(Price gt 1)/any(p:p/Price lt $it/Size) and Parts/$count($filter=Price gt 1) gt 0',
    'Parts/Sample.Part/$count gt 0',
    'Sample.Thing/Name eq $it/Code and $this/Open',
    'cast(Size,Edm.String) eq Name and cast(Name,Edm.Int32) eq 1',
    'isof(Name,Edm.String) and not isof(Name,Edm.Guid) and isof(Sample.Thing)',
    "Size in (1,2.5,null) and Name in ['a','b'] and Kind in ('Plain',S.Kind'Fancy')",
    'mindatetime() lt Created and maxdatetime() gt Created',
    "substring(Name,1,2) eq concat('a',trim(Name))",
    'round(Weight) eq floor(Size) add ceiling(1.5)',
  ])('accepts %s', (text) => {
    expect(check(text).type.family).toMatch(/boolean|null/)
  })

  test.each([
    // Names
    ['Nmae eq 1', 0, 'Sample.Thing has no property Nmae'],
    ['Owner/Nmae eq 1', 6, 'Sample.Owner has no property Nmae'],
    ['__proto__ eq null', 0, 'Sample.Thing has no property __proto__'],
    ['constructor/name eq null', 0, 'Sample.Thing has no property constructor'],
    ['Name/Length eq 1', 5, 'Edm.String has no members'],
    ['Parts/Price eq 1', 6, 'After a collection only any, all, $filter and $count can follow'],
    ['Parts/$filter(true)/Price eq 1', 20, 'A property is not allowed here'],
    ['Parts/any(p:q)', 12, 'Sample.Thing has no property q'],
    ["Kind eq S.Nonsense'X'", 8, 'The enumeration type S.Nonsense does not exist'],
    ["Kind eq S.Kind'Odd'", 8, 'Expected a member of Sample.Kind: Plain, Fancy'],
    ["Kind eq 'Odd'", 8, 'Expected a member of Sample.Kind: Plain, Fancy'],
    ["Kind eq S.Kind'Plain,Fancy'", 8, 'Expected a member of Sample.Kind: Plain, Fancy'],
    ["Marks eq 'Green'", 9, 'Expected a member of Sample.Marks: Red, Blue'],
    ['Maker/NS.Other/Name eq 1', 6, 'A cast to this type is not allowed here'],
    ['cast(Name,NS.Other) eq 1', 0, 'The type NS.Other does not exist'],
    // Operands
    [`ID eq '${guid}'`, 6, 'Edm.Guid cannot be compared with Edm.String. Write the guid without apostrophes'],
    ['date(Created) gt 2024-02-29T00:00:00Z', 17, 'Edm.Date cannot be compared with Edm.DateTimeOffset'],
    ['Created gt date(Created)', 11, 'Edm.DateTimeOffset cannot be compared with Edm.Date'],
    [
      "Created gt '2024-02-29'",
      11,
      'Edm.DateTimeOffset cannot be compared with Edm.String. Write the date without apostrophes',
    ],
    ['Name eq 5', 8, 'Edm.String cannot be compared with Edm.Int32'],
    ['5 eq Name', 0, 'Edm.Int32 cannot be compared with Edm.String'],
    ['Name eq Size', 8, 'Edm.String cannot be compared with Edm.Int32'],
    ["Kind eq S.Marks'Red'", 8, 'Sample.Kind cannot be compared with Sample.Marks'],
    ['Owner eq Maker', 9, 'Sample.Owner cannot be compared with Sample.Maker'],
    ['Owner gt null', 9, 'Sample.Owner cannot be compared with null'],
    ['Tags eq null', 0, 'A collection can be used with any, all, in and $count only'],
    ['Parts/any(p:p/Parts eq null)', 12, 'A collection can be used with any, all, in and $count only'],
    ['Name has 1', 9, 'Edm.String cannot be compared with Edm.Int32'],
    ["Name has 'x'", 0, 'Expected an enumeration value, found Edm.String'],
    ['Size add Name eq 1', 9, 'add cannot be applied to Edm.Int32 and Edm.String'],
    [
      'Created add Created eq Created',
      12,
      'add cannot be applied to Edm.DateTimeOffset and Edm.DateTimeOffset',
    ],
    ['-Name eq 1', 1, '- cannot be applied to Edm.String'],
    ['Size div 0 eq 1', 9, 'Division by zero'],
    ['Size mod 0.0 eq 1', 9, 'Division by zero'],
    ['2024-02-30 eq Day', 0, 'The date does not exist'],
    ['Created gt 2023-02-29T00:00:00Z', 11, 'The date does not exist'],
    ["Size in ('a')", 9, 'Edm.Int32 cannot be compared with Edm.String'],
    ['Name in Size', 8, 'Expected a list or a collection, found Edm.Int32'],
    ['Size in Tags', 8, 'Edm.Int32 cannot be compared with Edm.String'],
    ['cast(Size,Edm.Guid) eq ID', 0, 'Edm.Int32 cannot be cast to Edm.Guid'],
    // Conditions
    ['Name', 0, 'Expected a condition, found Edm.String'],
    ['Open and Size', 9, 'Expected a condition, found Edm.Int32'],
    ['not Size', 4, 'Expected a condition, found Edm.Int32'],
    ['Tags', 0, 'Expected a condition, found Collection(Edm.String)'],
    ['Tags/any(t:t)', 11, 'Expected a condition, found Edm.String'],
    // Functions
    ["startswith(Size,'1')", 11, 'startswith cannot be applied to Edm.Int32'],
    ['year(Name) eq 1', 5, 'year cannot be applied to Edm.String'],
    ['length(Tags) eq 1', 7, 'length cannot be applied to Collection(Edm.String)'],
    ['substring(Name,1.5) eq Name', 15, 'substring cannot be applied to Edm.Decimal'],
    ['substring(Name,0,-1) eq Name', 17, 'The length must not be negative'],
    ["matchesPattern(Name,'^a')", 0, 'matchesPattern is not supported'],
    ['hassubset(Tags,Tags)', 0, 'hassubset is not supported'],
    // Constructs that are not supported, or not allowed where they occur
    ['$root/Things/any()', 0, '$root is not supported'],
    ["Parts(1)/Name eq 'x'", 5, 'A key is not allowed here'],
    ['Parts/S.Best()/Name eq null', 6, 'A function of the service is not allowed here'],
    ['Name/@Core.Lang eq null', 5, 'An annotation is not allowed here'],
    ['Name/any(n:true)', 5, 'any is not allowed here'],
    ['Parts/$filter(Price gt 1) eq null', 0, 'Expected $count, any or all after $filter'],
    ['Parts/any()/Name eq null', 6, 'any is not allowed here'],
    ['[1,2] eq null', 0, 'A list is not allowed here'],
    ['{} eq null', 0, 'An object is not allowed here'],
  ])('rejects %s at character %i', (text, position, message) => {
    expect(faultOf(() => check(text))).toEqual({ message, position })
  })
})

describe('a parameter alias in checkFilter', () => {
  const aliases = (values: Readonly<Record<string, string>>) =>
    new Map(Object.entries(values).map(([name, value]) => [name, parseFilter(value)]))

  test('has the value that the query gives it, or null if the query gives none', () => {
    expect(check('Size eq @a', { aliases: aliases({ a: '@b add 1', b: 'Size' }) })).toMatchObject({
      right: { kind: 'arithmetic', left: { kind: 'member', path: ['Size'] } },
    })
    expect(check('Size eq @nothing')).toMatchObject({ right: { kind: 'constant', value: null } })
  })

  test('has the same meaning inside and outside of lambda expressions', () => {
    const inner = check('Parts/any(Name:Name/Name eq @a)', { aliases: aliases({ a: 'Name' }) })
    expect(inner).toMatchObject({ predicate: { right: { kind: 'member', variable: 0, path: ['Name'] } } })
  })

  test('is reported as the position of an error in its value', () => {
    expect(faultOf(() => check('Open and @a', { aliases: aliases({ a: 'startswith(Name,1)' }) }))).toEqual({
      message: 'startswith cannot be applied to Edm.Int32',
      position: 9,
    })
  })

  test.each([
    [{ a: '@a' }, 'The alias refers to itself'],
    [{ a: 'Open and @b', b: '@a' }, 'The alias refers to itself'],
    [{ a: '@b', b: '@c', c: '@d', d: '@e', e: 'true' }, 'Aliases are nested more than 4 levels deep'],
    [
      { a: Array(20).fill('@b').join(' and '), b: Array(20).fill('@c').join(' and '), c: 'Open' },
      'The query uses aliases more than 100 times',
    ],
  ])('is rejected if it would expand without bound: %j', (values, message) => {
    expect(faultOf(() => check('@a', { aliases: aliases(values) }))).toEqual({ message, position: 0 })
  })

  test('is rejected if a path follows the alias', () => {
    expect(faultOf(() => check('@a/Name eq null')).message).toBe('An alias cannot be followed by a path')
  })
})

test('checkFilter replaces now() with the time that the caller gives', () => {
  expect(check('Created lt now()')).toMatchObject({
    right: { value: { ms: 1000, offsetMinutes: 0 } },
  })
})
