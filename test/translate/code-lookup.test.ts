import { describe, expect, it } from 'vitest'

import { codeIdOf, toCodeQuery } from '../../src/translate/index.ts'

const id = 'ac00c159-62ce-44b8-ace6-c75caf7505e6'

describe('the lookup of attendance codes', () => {
  it.each([
    [['-'], "$filter=Code eq '-'"],
    [['-', "O'", '#&W'], "$filter=Code eq '-' or Code eq 'O''' or Code eq '#&W'"],
  ])('is asked for %j', (letters, query) => {
    expect(decodeURIComponent(toCodeQuery(letters))).toBe(query)
    expect(toCodeQuery(letters)).toMatch(/^[\x21-\x7e]+$/)
    expect(toCodeQuery(letters).split('&')).toHaveLength(1)
  })

  it.each([
    ['a code', { ExternalID: id, LookupType: 'AttendanceCode', Code: '-' }, id],
    ['a type with a namespace', { ExternalID: id, LookupType: 'SIMS.AttendanceCode', Code: '-' }, id],
    ['no type', { ExternalID: id, Code: '-' }, id],
    ['another code', { ExternalID: id, LookupType: 'AttendanceCode', Code: '/' }, undefined],
    ['another case', { ExternalID: id, LookupType: 'AttendanceCode', Code: 'B' }, undefined],
    ['another lookup', { ExternalID: id, LookupType: 'Reason', Code: '-' }, undefined],
    ['no guid', { ExternalID: '5', LookupType: 'AttendanceCode', Code: '-' }, undefined],
    ['no code', { ExternalID: id }, undefined],
    ['null', null, undefined],
    ['a text', '-', undefined],
  ])('finds the id in a row: %s', (_name, row, expected) => {
    expect(codeIdOf(row, new Set(['-', 'b']))).toBe(expected)
  })
})
