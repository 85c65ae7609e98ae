import { describe, expect, it } from 'vitest'

import { codeIdOf, toCodeQuery } from '../../src/translate/index.ts'

const id = 'ac00c159-62ce-44b8-ace6-c75caf7505e6'

describe('toCodeQuery and codeIdOf', () => {
  it.each([
    [['-'], "$filter=Code eq '-'"],
    [['-', "O'", '#&W'], "$filter=Code eq '-' or Code eq 'O''' or Code eq '#&W'"],
  ])('toCodeQuery asks V3 for the codes %j with one filter', (letters, query) => {
    expect(decodeURIComponent(toCodeQuery(letters))).toBe(query)
    expect(toCodeQuery(letters)).toMatch(/^[\x21-\x7e]+$/)
    expect(toCodeQuery(letters).split('&')).toHaveLength(1)
  })

  it.each([
    ['a row with the code', { ExternalID: id, LookupType: 'AttendanceCode', Code: '-' }, id],
    [
      'a row whose type has a namespace',
      { ExternalID: id, LookupType: 'SIMS.AttendanceCode', Code: '-' },
      id,
    ],
    ['a row without a type', { ExternalID: id, Code: '-' }, id],
    ['a row with another code', { ExternalID: id, LookupType: 'AttendanceCode', Code: '/' }, undefined],
    [
      'a row with the code in another letter case',
      { ExternalID: id, LookupType: 'AttendanceCode', Code: 'B' },
      undefined,
    ],
    ['a row of another lookup', { ExternalID: id, LookupType: 'Reason', Code: '-' }, undefined],
    ['a row whose id is not a guid', { ExternalID: '5', LookupType: 'AttendanceCode', Code: '-' }, undefined],
    ['a row without a code', { ExternalID: id }, undefined],
    ['null', null, undefined],
    ['text in place of a row', '-', undefined],
  ])(
    'codeIdOf returns an id only for a row of the lookup with a requested code: %s',
    (_name, row, expected) => {
      expect(codeIdOf(row, new Set(['-', 'b']))).toBe(expected)
    },
  )
})
