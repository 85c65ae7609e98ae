import { describe, expect, it } from 'vitest'

import { comparePair, MAX_PAIR_ROWS, type Pair } from '../../../src/compare/diff/compare-pair.ts'
import { guid, markRow, outline } from './mark-rows.ts'

const diffMarks = (v2: readonly unknown[], v3: readonly unknown[], options: Pick<Pair, 'order'> = {}) =>
  comparePair({ kind: 'marks', v2, v3, ...options })

const zero = '00000000-0000-0000-0000-000000000000'
const rows = (...indexes: number[]): Record<string, unknown>[] => indexes.map((index) => markRow(index))

describe('comparePair for marks', () => {
  it('aligns marks by id, in any order of the rows', () => {
    const v3 = [markRow(9), ...rows(1, 2, 3)]
    expect(outline(diffMarks(rows(1, 2, 3), v3))).toEqual(['same', 'same', 'same', 'onlyV3'])
    expect(outline(diffMarks(v3, rows(1, 2, 3)))).toEqual(['onlyV2', 'same', 'same', 'same'])
  })

  it('aligns marks by learner and session if their ids differ, and reports the difference', () => {
    const v3 = [markRow(1, { ExternalID: guid(0xf, 1) })]
    expect(outline(diffMarks(rows(1), v3))).toEqual(['differs, ExternalID value guid guid'])
  })

  it.each([
    ['a zero guid', zero, 'ExternalID value guid:zero guid'],
    ['null', null, 'ExternalID null null guid'],
    ['an empty text', '', 'ExternalID value length:0 guid'],
  ])('aligns a mark by learner and session if its id is %s', (_, ExternalID, found) => {
    expect(outline(diffMarks([markRow(1, { ExternalID })], rows(1)))).toEqual([`differs, ${found}`])
    expect(outline(diffMarks([markRow(1, { ExternalID })], [markRow(1, { ExternalID })]))).toEqual(['same'])
  })

  it('aligns marks by id even if the learner or the session differs', () => {
    const v3 = [markRow(1, { Learner: guid(0xc, 2), AttendableEvent: guid(0xd, 2) }), markRow(3)]
    expect(outline(diffMarks(rows(1, 3), v3))).toEqual([
      'differs, Learner value guid guid, AttendableEvent value guid guid',
      'same',
    ])
  })

  it('counts rows with the same id as one record', () => {
    expect(outline(diffMarks(rows(1, 2), rows(1, 1, 2)))).toEqual([
      'differs, (row) count count:1 count:2',
      'same',
    ])
    expect(outline(diffMarks(rows(1, 1), rows(1, 1)))).toEqual(['same'])
    const changed = markRow(1, { MinutesLate: 3 })
    expect(outline(diffMarks([...rows(1), changed], [changed, ...rows(1)]))).toEqual(['same'])
    expect(outline(diffMarks([changed], [...rows(1), changed]))).toEqual([
      'differs, (row) count count:1 count:2',
    ])
  })

  it('reports a second mark of a learner and session with another id as a record on one side only', () => {
    const doubled = [markRow(1), markRow(1, { ExternalID: guid(0xf, 1) })]
    expect(outline(diffMarks(rows(1), doubled))).toEqual(['same', 'onlyV3'])
    const others = doubled.map((row, index) => ({ ...row, ExternalID: guid(0xf, index + 5) }))
    expect(outline(diffMarks(rows(1), others))).toEqual(['differs, ExternalID value guid guid', 'onlyV3'])
  })

  it('aligns several marks of the same learner and session by their content', () => {
    const of = (ids: number, minutes: readonly number[]): Record<string, unknown>[] =>
      minutes.map((MinutesLate, at) => markRow(1, { ExternalID: guid(ids, at), MinutesLate }))
    const found = outline(diffMarks(of(1, [3, 7, 9]), of(2, [9, 3]), { order: 'free' }))
    expect(found.toSorted()).toEqual([
      'differs, ExternalID value guid guid',
      'differs, ExternalID value guid guid',
      'onlyV2',
    ])
  })

  it('returns the verdict "unknown" for rows without a key', () => {
    const nameless = [
      null,
      7,
      'x',
      [],
      {},
      { Learner: guid(0xc, 1) },
      { ExternalID: 5 },
      { ExternalID: 'x'.repeat(65) },
    ]
    expect(outline(diffMarks(nameless, rows(1)))).toEqual(['onlyV3', ...nameless.map(() => 'unknown')])
  })

  it('reports a moved row as a difference only if the client asked for an order', () => {
    const v2 = rows(1, 2, 3, 4, 5)
    const v3 = rows(1, 5, 2, 3, 4)
    const moved = 'equivalent, order-unasked (row)'
    expect(outline(diffMarks(v2, v3))).toEqual(['same', 'same', 'same', 'same', moved])
    expect(outline(diffMarks(v2, v3, { order: 'asked' })).at(-1)).toBe('differs, (row) order place place')
    expect(outline(diffMarks(v2, v3, { order: 'free' }))).toEqual(['same', 'same', 'same', 'same', 'same'])
  })

  it('throws if a call has more rows than the maximum', () => {
    const many = Array.from({ length: MAX_PAIR_ROWS + 1 }, () => null)
    expect(() => diffMarks(many, [])).toThrow(expect.objectContaining({ code: 'ADP_LIMIT' }))
  })
})
