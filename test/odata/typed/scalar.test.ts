import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  isGuid,
  parseDate,
  parseDuration,
  parseInstant,
  parseTimeOfDay,
} from '../../../src/odata/typed/scalar.ts'

describe('parseInstant', () => {
  test.each([
    ['1970-01-01T00:00:00Z', 0, 0],
    ['1970-01-01T00:00Z', 0, 0],
    ['1970-01-01T01:00:00.5+01:00', 500, 60],
    ['1969-12-31T12:30:00-11:30', 0, -690],
    ['1972-06-30T23:59:60Z', 78_796_800_000, 0],
    ['0001-01-01T00:00:00Z', -62_135_596_800_000, 0],
  ])('parses the instant %s', (text, ms, offsetMinutes) => {
    expect(parseInstant(text)).toEqual({ ms, offsetMinutes })
  })

  test.each([
    ['1970-01-01t00:00:00.0004999z', 0, 4999],
    ['2026-03-01T23:59:59.9999999Z', Date.UTC(2026, 2, 2) - 1, 9999],
    ['2026-03-02T00:59:59.999999999999+01:00', Date.UTC(2026, 2, 2) - 1, 9999],
    ['2026-03-02T00:00:00.0000001Z', Date.UTC(2026, 2, 2), 1],
    ['2026-03-02T00:00:00.00000001Z', Date.UTC(2026, 2, 2), undefined],
  ])('cuts the fraction of the instant %s to whole steps of 100 ns', (text, ms, ticks) => {
    expect(parseInstant(text)).toMatchObject({ ms })
    expect(parseInstant(text)?.ticks).toBe(ticks)
  })

  test.each([
    '2024-02-30T00:00:00Z',
    '2024-01-01T24:00:00Z',
    '2024-01-01T00:00:00',
    '2024-01-01',
    '2024-01-01T00:00:00+0100',
    '',
  ])('returns undefined for the malformed instant %j', (text) => {
    expect(parseInstant(text)).toBeUndefined()
  })

  test('parses every instant that Date.toISOString writes', () => {
    fc.assert(
      fc.property(
        fc.date({ noInvalidDate: true, min: new Date('0000-01-01'), max: new Date('9999-12-31') }),
        (date) => {
          expect(parseInstant(date.toISOString())).toEqual({ ms: date.getTime(), offsetMinutes: 0 })
        },
      ),
    )
  })
})

test.each([
  [parseDate, '2024-02-29', Date.UTC(2024, 1, 29)],
  [parseDate, '0000-01-01', -62_167_219_200_000],
  [parseDate, '-0001-12-31', -62_167_305_600_000],
  [parseDate, '10000-01-01', 253_402_300_800_000],
  [parseDate, '2023-02-29', undefined],
  [parseDate, '2024-2-1', undefined],
  [parseTimeOfDay, '00:00', 0],
  [parseTimeOfDay, '13:30:01.5', 48_601_500],
  [parseTimeOfDay, '23:59:60', 86_400_000],
  [parseTimeOfDay, '24:00:00', undefined],
  [parseTimeOfDay, '1:00', undefined],
  [parseDuration, 'P1DT2H3M4.5S', 93_784_500],
  [parseDuration, '-PT0.001S', -1],
  [parseDuration, 'P2D', 172_800_000],
  [parseDuration, 'P', undefined],
  [parseDuration, 'PT', undefined],
  [parseDuration, 'P1Y', undefined],
  [parseDuration, '1H', undefined],
])(
  'the scalar parser %o turns %s into milliseconds, or into undefined if the text is malformed',
  (parse, text, ms) => {
    expect(parse(text)).toBe(ms)
  },
)

test.each([
  ['0123abcd-89EF-4a5b-8c7d-00ff11ee22dd', true],
  ['0123ABCD-89EF-4A5B-8C7D-00FF11EE22DD', true],
  ['', false],
  ['0123abcd-89EF-4a5b-8c7d-00ff11ee22dd0', false],
  ['123abcd-89EF-4a5b-8c7d-00ff11ee22dd', false],
  ['{0123abcd-89EF-4a5b-8c7d-00ff11ee22dd}', false],
  ['0123abcd089EF-4a5b-8c7d-00ff11ee22dd', false],
  ['0123abcg-89EF-4a5b-8c7d-00ff11ee22dd', false],
  ['0123abcd89EF4a5b8c7d00ff11ee22dd', false],
])('isGuid decides whether %j is a guid: %s', (text, is) => {
  expect(isGuid(text)).toBe(is)
})
