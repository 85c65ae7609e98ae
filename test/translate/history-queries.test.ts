import { describe, expect, it } from 'vitest'

import { historyKey, toHistory, toHistoryQueries } from '../../src/translate/index.ts'
import type { FlatReply } from '../../src/v2/index.ts'
import { guid } from '../support/batch-request.ts'
import { flatMark } from '../support/flat-mark.ts'

const mark = (learner: number, event: number): FlatReply =>
  flatMark({
    ExternalID: guid(learner * 1_000 + event),
    Learner: guid(learner),
    AttendableEvent: guid(event),
    SchoolAttendanceCode: guid(7),
  })

describe('toHistoryQueries', () => {
  it('selects the changes of each mark by its learner and session', () => {
    const one = `Attendee/ExternalID eq ${guid(1)} and Event/ExternalID eq ${guid(2)}`
    const other = `Attendee/ExternalID eq ${guid(3)} and Event/ExternalID eq ${guid(4)}`
    const texts = (marks: FlatReply[]): string[] => toHistoryQueries(marks).map(decodeURIComponent)
    expect(texts([])).toEqual([])
    expect(texts([mark(1, 2), { ...mark(1, 2), ExternalID: guid(9) }])).toEqual([`$filter=${one}`])
    expect(texts([mark(1, 2), mark(3, 4)])).toEqual([`$filter=${one} or ${other}`])
  })

  it('splits a page of 1,000 marks into 25 queries of at most 8 KiB', () => {
    const queries = toHistoryQueries(Array.from({ length: 1_000 }, (_, n) => mark(n, n % 3)))
    expect(queries.length).toBe(25)
    expect(Math.max(...queries.map((query) => query.length))).toBeLessThan(8_192)
  })
})

describe('toHistory', () => {
  const row = {
    ExternalID: guid(5),
    Present: false,
    Absent: true,
    RecordedBy: null,
    Attendee: { ExternalID: guid(1) },
    Event: { ExternalID: guid(2) },
    AttendanceCode: { ExternalID: guid(8) },
    Qualifier: { MinutesLate: 3, Comment: 'c' },
  }

  it('converts a row into a flat state of the mark, even if the row names no recorder', () => {
    const state = { ...mark(1, 2), ExternalID: guid(5), Present: false, Absent: true, SchoolAttendanceCode: guid(8), MinutesLate: 3, Comment: 'c' } // prettier-ignore
    expect(toHistory(row)).toEqual(state)
    expect(historyKey(state)).toBe(historyKey({ ...mark(1, 2), Learner: guid(1).toUpperCase() }))
  })

  it.each([null, 'x', {}, { ...row, AttendanceCode: null }, { ...row, Attendee: null }])(
    'rejects the row %j',
    (value) => {
      expect(toHistory(value)).toBe(undefined)
    },
  )
})
