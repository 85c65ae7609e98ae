import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { readGivenRows, writeGivenRows } from '../../src/reads/collect-page.ts'
import type { FlatReply } from '../../src/v2/index.ts'
import { flatMark } from '../support/flat-mark.ts'

const row = (id: string): FlatReply => flatMark({ ExternalID: id })
const guidOf = (index: number): string => `00000000-0000-4000-8000-${index.toString(16).padStart(12, '0')}`

describe('the rows that a client has been given', () => {
  it('are known again in any order, and no other row of the page is taken for one', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.uuid(), { maxLength: 60 }), fc.nat(60), (ids, at) => {
        const [given, left] = [ids.slice(0, at).map(row), ids.slice(at).map(row)]
        const isGiven = readGivenRows(writeGivenRows(given, left))
        expect(given.toReversed().every(isGiven)).toBe(true)
        expect(left.some(isGiven)).toBe(false)
        expect(isGiven(row(ids[at]?.toUpperCase() ?? ''))).toBe(false)
      }),
    )
  })

  it('stay apart in pages so large that some have the same four bytes', () => {
    const rows = Array.from({ length: 16_000 }, (_, index) => row(guidOf(index)))
    for (const at of [1, 4_000, 8_000, 15_999]) {
      const text = writeGivenRows(rows.slice(0, at), rows.slice(at))
      const isGiven = readGivenRows(text)
      expect(rows.filter(isGiven)).toEqual(rows.slice(0, at))
    }
  })

  it('take 4 KB for a page of 1000, and nothing for none', () => {
    const rows = Array.from({ length: 1_000 }, (_, index) => row(guidOf(index)))
    expect(writeGivenRows(rows.slice(1), rows.slice(0, 1)).length).toBeLessThan(5_400)
    expect(writeGivenRows([], rows)).toBe('')
    expect(readGivenRows('')(row(guidOf(1)))).toBe(false)
  })

  it('hold a row that V3 shows twice once', () => {
    const isGiven = readGivenRows(writeGivenRows([row('a')], [row('a'), row('b')]))
    expect([row('A'), row('b')].map(isGiven)).toEqual([true, false])
  })
})
