import { describe, expect, test } from 'vitest'

import { parseFilter } from '../../../src/odata/parse/parse-query.ts'
import { faultOf } from '../fault.ts'

const guid = '01234567-89AB-cdef-0123-456789abcdef'

describe('parseFilter, for literals', () => {
  test.each([
    ['null', 'null', 'null'],
    ['true', 'Edm.Boolean', 'true'],
    ['FALSE', 'Edm.Boolean', 'false'],
    ['0', 'Edm.Int32', '0'],
    ['-2147483648', 'Edm.Int32', '-2147483648'],
    ['+7', 'Edm.Int32', '7'],
    ['2147483648', 'Edm.Int64', '2147483648'],
    ['9223372036854775807', 'Edm.Int64', '9223372036854775807'],
    ['9223372036854775808', 'Edm.Decimal', '9223372036854775808'],
    ['100000000000000000000000', 'Edm.Decimal', '100000000000000000000000'],
    ['4.0', 'Edm.Decimal', '4.0'],
    ['-1.5e-3', 'Edm.Double', '-1.5e-3'],
    ['1E3', 'Edm.Double', '1E3'],
    ['INF', 'Edm.Double', 'INF'],
    ['-INF', 'Edm.Double', '-INF'],
    ['NaN', 'Edm.Double', 'NaN'],
    ["'O''Neil'", 'Edm.String', "O'Neil"],
    ["''", 'Edm.String', ''],
    ["''''", 'Edm.String', "'"],
    ["'a(b)&;,'", 'Edm.String', 'a(b)&;,'],
    [guid, 'Edm.Guid', guid],
    ['abcdef01-89ab-cdef-0123-456789abcdef', 'Edm.Guid', 'abcdef01-89ab-cdef-0123-456789abcdef'],
    ['12345678-1234-1234-1234-123456789012', 'Edm.Guid', '12345678-1234-1234-1234-123456789012'],
    ['2014-02-13', 'Edm.Date', '2014-02-13'],
    ['-0044-03-15', 'Edm.Date', '-0044-03-15'],
    ['2014-02-13T13:00Z', 'Edm.DateTimeOffset', '2014-02-13T13:00Z'],
    ['2014-02-13t13:00:00.123456789012z', 'Edm.DateTimeOffset', '2014-02-13T13:00:00.123456789012Z'],
    ['2014-02-13T13:00:00-11:30', 'Edm.DateTimeOffset', '2014-02-13T13:00:00-11:30'],
    ['2014-02-13T13:00:00+01:00', 'Edm.DateTimeOffset', '2014-02-13T13:00:00+01:00'],
    ['13:30:00.5', 'Edm.TimeOfDay', '13:30:00.5'],
    ["duration'P1DT2H3M4.5S'", 'Edm.Duration', 'P1DT2H3M4.5S'],
    ["DURATION'-pt1h'", 'Edm.Duration', '-PT1H'],
    ["binary'AQI='", 'Edm.Binary', 'AQI'],
    ["binary''", 'Edm.Binary', ''],
  ])('parses %s as %s', (text, type, value) => {
    expect(parseFilter(text)).toEqual({ kind: 'literal', type, value, position: 0 })
  })

  test('parses a sign before a name as a negation', () => {
    expect(parseFilter('-INFO')).toMatchObject({ kind: 'negate', operand: { kind: 'path' } })
  })

  test('accepts a time zone offset whose plus sign was decoded to a space', () => {
    expect(parseFilter('2014-02-13T13:00:00 01:00')).toMatchObject({ value: '2014-02-13T13:00:00+01:00' })
  })

  test.each([
    ["SIMS.GroupTypeEnum'YearGroup'", 'SIMS.GroupTypeEnum', ['YearGroup']],
    ["GroupTypeEnum'YearGroup'", 'GroupTypeEnum', ['YearGroup']],
    ["A.B.C'Solid,Yellow,-42'", 'A.B.C', ['Solid', 'Yellow', '-42']],
  ])('parses the enumeration literal %s', (text, typeName, members) => {
    expect(parseFilter(text)).toEqual({ kind: 'enum', typeName, members, position: 0 })
  })

  test.each([
    ['01234g67-89ab-cdef-0123-456789abcdef', 5],
    ['01234567-89ab-cdef-0123-456789abcdefa', 36],
    ['1.', 1],
    ['1.5.2', 3],
    ['2014-13-01', 4],
    ['2014-02-13T25:00:00Z', 11],
    ['2014-02-13T13:00:00', 19],
    ["duration'P1Y'", 8],
    ["duration'P'", 8],
    ["duration'PT'", 8],
    ["binary'A'", 6],
    ["Kind''", 5],
    ["Kind'A,'", 7],
    ["Kind'A B'", 6],
  ])('rejects the literal %s at character %i', (text, position) => {
    expect(faultOf(() => parseFilter(text)).position).toBe(position)
  })
})
