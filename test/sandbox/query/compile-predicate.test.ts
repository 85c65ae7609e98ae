import { describe, expect, test } from 'vitest'

import { checkFilter } from '../../../src/odata/check/check-expression.ts'
import { checkQuery } from '../../../src/odata/check/check-query.ts'
import { compileComparator, compilePredicate } from '../../../src/sandbox/query/compile-expression.ts'
import { parseFilter, parseQuery } from '../../../src/odata/parse/parse-query.ts'
import { sampleIndex } from '../../odata/sample-model.ts'

const thing = {
  ID: '0000000A-0000-0000-0000-000000000000',
  Code: 'b𝔸z',
  Name: 'Élan vital',
  Size: 7,
  Weight: '2.50',
  Open: true,
  Kind: 'Fancy',
  Marks: 'Blue',
  Created: '2024-03-31T01:30:15.250+01:00',
  Day: '2024-02-29',
  At: '13:30:01.5',
  Lasts: '-P1DT2H',
  Hash: 'AQ==',
  Owner: { ExternalID: null, Type: 'x', Names: ['a', 'b'] },
  Tags: ['red', 'blue', null],
  Parts: [
    { ID: '1', Price: 5, Name: 'red', Parts: [{ Price: 9, Parts: [] }] },
    { ID: '2', Price: null, Name: null, Parts: [] },
  ],
}

const holds = (filter: string, entity: unknown = thing): boolean =>
  compilePredicate(checkFilter(parseFilter(filter), 'Sample.Thing', sampleIndex, { now: 0 }), sampleIndex, {
    left: 1_000,
  })(entity)

describe('compilePredicate', () => {
  test.each([
    ['Parts/any(a:Parts/any(b:Parts/any(c:c/Price eq 0)))', 14, 24],
    ['Parts/$count($filter=Price gt 4) gt 5', 2, 0],
    ['Tags/any()', 1, 0],
  ])(
    'evaluates %s within a budget of %i visits, and throws with one visit fewer',
    (filter, visits, position) => {
      const compile = (left: number) =>
        compilePredicate(
          checkFilter(parseFilter(filter), 'Sample.Thing', sampleIndex, { now: 0 }),
          sampleIndex,
          { left },
        )
      expect(() => compile(visits)(thing)).not.toThrow()
      expect(() => compile(visits - 1)(thing)).toThrow(
        expect.objectContaining({ code: 'ADP_QUERY', position }),
      )
    },
  )

  test.each([
    // Values are compared by their meaning, not by their notation.
    'ID eq 0000000a-0000-0000-0000-000000000000',
    'Created eq 2024-03-31T00:30:15.25Z and Created eq 2024-03-30T23:30:15.2500-01:00',
    'Created lt 2024-03-31T00:30:15.251Z and Created gt 2024-03-31T00:30:15.249Z',
    'Weight eq 2.5 and Weight lt 3 and Size eq 7.0 and Size eq 7e0',
    'At eq 13:30:01.500 and At gt 13:30:01',
    "Lasts eq duration'-PT26H' and Lasts lt 'PT0S'",
    "Hash eq binary'AQ'",
    "Kind eq S.Kind'Fancy' and Kind eq 'Fancy' and Kind gt S.Kind'Plain'",
    "Marks has S.Marks'Blue' and Marks eq 'Blue' and not (Marks has S.Marks'1')",
    "Name gt 'E' and Name lt 'Ö' and not (Name eq 'élan vital')",
    'Open gt false and Open eq (1 eq 1)',
    // Null equals only null, has no order, and counts as unknown for `and`, `or` and `not`.
    'Owner/ExternalID eq null and null eq null and Maker/Name eq null and Maker eq null',
    'Owner/ExternalID ne 0000000a-0000-0000-0000-000000000000',
    'not (Maker/Name gt null) and not (Maker/Name lt null)',
    'Maker/Name ge null and null le Maker/Name and not (Name ge null)',
    "not (Maker/Name gt 'a') and not (Maker/Name le 'a')",
    'null or true',
    'not (null and false)',
    'Size add null eq null and length(Maker/Name) eq null and concat(Name,null) eq null',
    "(Size in (null)) eq false and Maker/Name in ('a',null)",
    'NaN ne NaN and not (NaN eq NaN) and INF gt 1e308 and -INF lt -1e308',
    // These conditions calculate with numbers, times and durations.
    'Size add 1 eq 8 and Size sub 1.5 eq 5.5 and Size mul 2 eq 14 and -Size eq -7',
    'Size div 2 eq 3 and -7 div 2 eq -3 and Size divby 2 eq 3.5 and Size div 2.0 eq 3.5',
    'Size mod 4 eq 3 and -7 mod 4 eq -3 and Weight mod 2 eq 0.5',
    'Size div (Size sub 7) eq null and Size mod (Size sub 7) eq null',
    "Created add duration'PT1H' eq 2024-03-31T01:30:15.25Z",
    "Created sub 2024-03-31T00:30:15.25Z eq duration'PT0S'",
    "Day add duration'PT23H' eq 2024-02-29 and Day sub duration'PT1S' eq 2024-02-28",
    "Day sub 2024-02-28 eq duration'P1D' and Lasts mul -2 eq duration'P2DT4H' and Lasts div 2 eq duration'-PT13H'",
    'Created lt 2024-03-31T00:30:15.2500001Z and Created gt 2024-03-31T00:30:15.2499999Z and Created ne 2024-03-31T00:30:15.2500001Z',
    '2024-03-31T23:59:59.9999999Z lt 2024-04-01T00:00:00Z and fractionalseconds(2024-03-31T23:59:59.9999999Z) eq 0.9999999',
    '2024-03-31T23:59:59.9999999Z lt 2024-04-01T00:00:00.0000001Z and date(2024-03-31T23:59:59.9999999Z) eq 2024-03-31',
    // These conditions call functions.
    "contains(Name,'vit') and startswith(Name,'Él') and endswith(Name,'al') and not contains(Name,'VIT')",
    "length(Code) eq 3 and indexof(Code,'z') eq 2 and indexof(Code,'q') eq -1 and substring(Code,1,1) eq '𝔸'",
    "substring(Name,5) eq 'vital' and substring(Name,99) eq '' and substring(Name,-5) eq 'vital' and substring(Name,0,99) eq Name",
    "tolower(Name) eq 'élan vital' and toupper(Name) eq 'ÉLAN VITAL' and trim('\u00a0 a ') eq 'a'",
    'year(Created) eq 2024 and month(Created) eq 3 and day(Created) eq 31 and hour(Created) eq 1',
    'minute(Created) eq 30 and second(Created) eq 15 and fractionalseconds(Created) eq 0.25',
    'date(Created) eq 2024-03-31 and time(Created) eq 01:30:15.25 and totaloffsetminutes(Created) eq 60',
    'day(Day) eq 29 and hour(At) eq 13 and second(At) eq 1 and fractionalseconds(At) eq 0.5',
    'totalseconds(Lasts) eq -93600',
    'round(2.5) eq 3 and round(-2.5) eq -3 and floor(-2.5) eq -3 and ceiling(-2.5) eq -2 and round(Weight) eq 3',
    // These conditions cast values to other types.
    "cast(Size,Edm.String) eq '7' and cast(Open,Edm.String) eq 'true' and cast(Kind,Edm.String) eq 'Fancy'",
    "cast(Created,Edm.String) eq '2024-03-31T01:30:15.250+01:00' and cast(Day,Edm.String) eq '2024-02-29'",
    "cast(At,Edm.String) eq '13:30:01.500' and cast(Lasts,Edm.String) eq '-PT26H' and cast(INF,Edm.String) eq 'INF'",
    "cast(2024-01-01T00:00:00-11:30,Edm.String) eq '2024-01-01T00:00:00-11:30'",
    "cast(2024-01-01T00:00:00Z,Edm.String) eq '2024-01-01T00:00:00Z' and cast(13:30:00,Edm.String) eq '13:30:00'",
    "cast(duration'PT1H30M1.5S',Edm.String) eq 'PT1H30M1.5S' and cast(duration'PT0S',Edm.String) eq 'PT0S'",
    "cast(-INF,Edm.String) eq '-INF' and cast(NaN,Edm.String) eq 'NaN' and cast(ID,Edm.String) eq tolower(cast(ID,Edm.String))",
    "cast(Marks,Edm.String) eq 'Blue' and cast('0000000A-0000-0000-0000-000000000000',Edm.Guid) eq ID",
    "cast(Size,Edm.Double) eq 7 and cast('false',Edm.Boolean) eq false and cast('yes',Edm.Boolean) eq null",
    "cast('7.9',Edm.Int32) eq 7 and cast(Weight,Edm.Int32) eq 2 and cast('x',Edm.Int32) eq null",
    "cast('true',Edm.Boolean) and cast('2024-02-30',Edm.Date) eq null and cast(null,Edm.String) eq null",
    'isof(Name,Edm.String) and not isof(Maker/Name,Edm.String) and not isof(Size,Edm.String)',
    // These conditions apply to collections.
    "Tags/any(t:t eq 'red') and not Tags/any(t:t eq 'green') and 'blue' in Tags and null in Tags",
    "not Tags/all(t:t eq 'red') and Tags/all(t:t ne 'green') and Tags/any() and Tags/$count eq 3",
    'Parts/any(p:p/Price gt 4) and not Parts/all(p:p/Price gt 4) and Parts/any(p:p/Price eq null)',
    'Parts/any(p:p/Parts/any(q:q/Price gt p/Price and q/Price gt $it/Size))',
    'Parts/$count eq 2 and Parts/$count($filter=Price gt 1) eq 1 and Parts/$filter(Price gt 1)/$count eq 1',
    "Parts/$filter(Price gt 1)/all(p:p/Name eq 'red') and not Parts/$filter(Price gt 99)/any()",
    "Owner/Names/any(n:Tags/any(t:t eq 'red') and n eq 'a')",
  ])('returns a predicate that is true for %s', (filter) => {
    expect(holds(filter)).toBe(true)
  })

  test.each([
    ['null', thing],
    ['Open', {}],
    ['not Open', {}],
    ['Open and Size eq 1', {}],
    ['Parts/any()', {}],
    ['Parts/any(p:p/Price eq null)', { Parts: [] }],
    ['Size gt 1', { Size: 'much' }],
    ["Name eq 'x'", { Name: 5 }],
    ['Created gt 2024-01-01T00:00:00Z', { Created: '2024-02-30T00:00:00Z' }],
    ['Open', null],
    ['Owner/Type eq Name and Open', { Owner: 'not an object' }],
  ])('returns a predicate that is false if the condition is null: %s', (filter, entity) => {
    expect(holds(filter, entity)).toBe(false)
  })

  test('evaluates all() to true and any() to false if the collection is missing', () => {
    expect(holds('Parts/all(p:false) and not Parts/any() and Parts/$count eq 0', {})).toBe(true)
  })
})

describe('compileComparator', () => {
  const sort = (orderby: string, rows: readonly unknown[]): unknown[] => {
    const items = checkQuery(parseQuery(`$orderby=${orderby}`), 'Sample.Thing', sampleIndex, {
      now: 0,
    }).orderby
    return [...rows].sort(compileComparator(items, sampleIndex, { left: 0 }))
  }

  test('puts null first in ascending order and last in descending order', () => {
    const rows = [{ Size: 2 }, { Size: null }, { Size: -1 }]
    expect(sort('Size', rows)).toEqual([{ Size: null }, { Size: -1 }, { Size: 2 }])
    expect(sort('Size desc', rows)).toEqual([{ Size: 2 }, { Size: -1 }, { Size: null }])
  })

  test('breaks ties by the next item of $orderby, and keeps the original order of rows that are still equal', () => {
    const rows = [
      { Name: 'b', Size: 1, n: 1 },
      { Name: 'a', Size: 1, n: 2 },
      { Name: 'a', Size: 2, n: 3 },
      { Name: 'a', Size: 2, n: 4 },
    ]
    expect(sort('Name,Size desc', rows).map((row) => (row as { n: number }).n)).toEqual([3, 4, 2, 1])
  })

  test('orders text by code point', () => {
    const rows = ['\ue000', '\u{1d538}', 'é', 'z'].map((Name) => ({ Name }))
    expect(sort('Name', rows).map((row) => (row as { Name: string }).Name)).toEqual([
      'z',
      'é',
      '\ue000',
      '\u{1d538}',
    ])
  })

  test('orders instants by time', () => {
    const rows = ['2024-01-01T00:00:00Z', '2024-01-01T00:30:00+01:00'].map((Created) => ({ Created }))
    expect(sort('Created', rows)).toEqual([rows[1], rows[0]])
  })
})
