import { describe, expect, it } from 'vitest'

import { createReadPlanner, type ReadRules } from '../../src/translate/index.ts'

const rules: ReadRules = {
  needsRecordedBy: false,
  unmarkedCodes: [],
  histories: false,
}
const planner = createReadPlanner(() => Date.UTC(2026, 5, 10))
const guid = '41dba12f-bcce-470b-8ce4-b260ffb62649'
const decoded = (queries: readonly string[]): string[] => queries.map((query) => decodeURIComponent(query))
const plan = (query: string, own: Partial<ReadRules> = {}) => planner.plan(query, { ...rules, ...own })
const filtered = (filter: string, own: Partial<ReadRules> = {}) =>
  decoded(plan(`$filter=${encodeURIComponent(filter)}`, own).queries)

describe('createReadPlanner', () => {
  it.each([
    [`Learner eq ${guid}`, `Attendee/ExternalID eq ${guid}`],
    [`AttendableEvent ne ${guid}`, `Event/ExternalID ne ${guid}`],
    ['Learner in (ABCDEF01-0000-4000-8000-00000000000F)', 'Attendee/ExternalID in (abcdef01-0000-4000-8000-00000000000f)'],
    ['Present', 'Present eq true'],
    ['not (Present)', 'Present eq false'],
    [`SchoolAttendanceCode in (${guid},${guid})`, `AttendanceCode/ExternalID in (${guid},${guid})`],
    ['RecordedBy eq null', 'RecordedBy/ExternalID eq null'],
    ['MinutesLate gt 5 or not (Comment eq null)', 'Qualifier/MinutesLate gt 5 or not (Qualifier/Comment eq null)'],
    ["contains(tolower(Comment),'a b')", "contains(tolower(Qualifier/Comment),'a b')"],
    ['$it/Present eq true and Absent', 'Present eq true and Absent eq true'],
    ['-MinutesLate add 1 lt -3', '-Qualifier/MinutesLate add 1 lt -3'],
    ["cast(MinutesLate,Edm.String) eq '5'", "cast(Qualifier/MinutesLate,Edm.String) eq '5'"],
    ["Comment eq 'Learner'", "Qualifier/Comment eq 'Learner'"],
    ['MinutesLate in (1,2)', 'Qualifier/MinutesLate in (1,2)'],
    ['MinutesLate in [1,2]', 'Qualifier/MinutesLate in [1,2]'],
    ["AttendanceService.Models.OData.AttendanceRecord/Comment eq 'x'", "Qualifier/Comment eq 'x'"],
    ['$it/AttendanceService.Models.OData.AttendanceRecord/Learner eq null', 'Attendee/ExternalID eq null'],
    ['isof(Comment,Edm.String)', 'isof(Qualifier/Comment,Edm.String)'],
    ['isof(Comment,AttendanceService.Models.OData.AttendanceRecord)', 'false'],
    ['isof(AttendanceService.Models.OData.AttendanceRecord) and isof($it,AttendanceService.Models.OData.AttendanceRecord)', 'true and true'],
    ['isof($it,Edm.String) or isof(Edm.String)', 'false or false'],
    ['RecordedBy ne null and (Present or not Absent)', 'RecordedBy/ExternalID ne null and (Present eq true or Absent eq false)'],
    // V3 rejects a date in place of a time (service-facts 8).
    ['AttendableEventStart ge 2026-03-02 and 2026-03-09 gt AttendableEventStart', 'AttendableEventStart ge 2026-03-02T00:00:00Z and 2026-03-09T00:00:00Z gt AttendableEventStart'],
    [
      "RecordedOn add duration'P1D' lt 2026-03-02 or RecordedOn in (2026-03-02,2026-03-03T09:00:00Z)",
      "RecordedOn add duration'P1D' lt 2026-03-02T00:00:00Z or RecordedOn in (2026-03-02T00:00:00Z,2026-03-03T09:00:00Z)",
    ],
    ['date(RecordedOn) eq 2026-03-02 and date(RecordedOn) in (2026-03-02)', 'date(RecordedOn) eq 2026-03-02 and date(RecordedOn) in (2026-03-02)'],
    ["2026-03-02 add duration'P1D' gt date(RecordedOn) and cast(Comment,Edm.Date) le 2026-03-02", "2026-03-02 add duration'P1D' gt date(RecordedOn) and cast(Qualifier/Comment,Edm.Date) le 2026-03-02"],
  ])('translates %s', (v2, v3) => {
    expect(filtered(v2)).toEqual([`$filter=${v3}`])
  }) // prettier-ignore

  it('orders by nested paths, and keeps $top, $skip, $count and $select out of the query to V3', () => {
    const { queries, ...rest } = plan(
      'filter=true&OrderBy=Learner desc,MinutesLate&top=5&skip=2&count=true&select=Learner,Comment&x=1',
    )
    expect(decoded(queries)).toEqual(['$filter=true&$orderby=Attendee/ExternalID desc,Qualifier/MinutesLate'])
    expect(rest).toEqual({
      select: new Map([
        ['Learner', 'all'],
        ['Comment', 'all'],
      ]),
      skip: 2,
      top: 5,
      count: true,
      narrowed: true,
    })
  })

  it.each([
    ['their values', `Learner eq @who and @ok&@who=${guid}&@ok=Present eq true`, `Attendee/ExternalID eq ${guid} and Present eq true`],
    ['a field alone, as a comparison', 'Present and @p&@p=not Absent', 'Present eq true and Absent eq false'],
    ['the value of another alias', "@a eq 'x'&@a=@b&@b=Comment", "Qualifier/Comment eq 'x'"],
    ['a date, as a time', 'AttendableEventStart ge @day&@day=2026-03-02', 'AttendableEventStart ge 2026-03-02T00:00:00Z'],
    // OData URL conventions 5.3
    ['null if they have no value', 'RecordedBy eq @nobody and @some&@some=@none eq 1', 'RecordedBy/ExternalID eq null and null eq 1'],
  ])('replaces aliases by %s', (_what, v2, v3) => {
    expect(decoded(plan(`$filter=${v2}`).queries)).toEqual([`$filter=${v3}`])
  }) // prettier-ignore

  it('makes V3 leave out rows without a mark', () => {
    expect(filtered('Present or Absent', { needsRecordedBy: true, unmarkedCodes: [guid] })).toEqual([
      `$filter=(Present eq true or Absent eq true) and RecordedBy/ExternalID ne null and AttendanceCode/ExternalID ne ${guid}`,
    ])
  })

  it('splits a range of more than 90 days into adjacent windows that do not overlap', () => {
    const wide =
      'AttendableEventStart ge 2026-01-01T00:00:00Z and AttendableEventStart le 2026-06-30T00:00:00Z'
    const window = (from: string, to: string): string =>
      `$filter=${wide} and AttendableEventStart ge ${from}T00:00:00Z and AttendableEventStart lt ${to}T00:00:00Z`
    const windows = [
      window('2026-01-01', '2026-04-01'),
      window('2026-04-01', '2026-06-30'),
      window('2026-06-30', '2026-09-28'),
    ]
    expect(filtered(wide)).toEqual(windows)
    const turned = decoded(plan(`$filter=${wide}&$orderby=AttendableEventStart desc`).queries)
    expect(turned).toEqual(windows.toReversed().map((query) => `${query}&$orderby=AttendableEventStart desc`))
  })

  it.each([
    ['exactly 90 days', 'AttendableEventStart ge 2026-01-01T00:00:00Z and 2026-04-01T00:00:00Z ge AttendableEventStart', 1],
    ['either of two days', 'AttendableEventStart eq 2026-01-01T00:00:00Z or AttendableEventStart eq 2026-06-01T00:00:00Z', 2],
    ['a list of days', 'AttendableEventStart in (2026-01-01T00:00:00Z,2026-06-01T00:00:00Z)', 1],
    ['dates without a time', 'AttendableEventStart ge 2026-01-01 and AttendableEventStart lt 2026-06-01', 2],
    ['a range with one end', 'AttendableEventStart ge 2020-01-01T00:00:00Z', 1],
    ['a negated range', 'not (AttendableEventStart ge 2020-01-01T00:00:00Z and AttendableEventStart le 2026-01-01T00:00:00Z)', 1],
  ])("plans the fewest queries that V3's limit of 90 days allows, for a filter on %s", (_name, filter, count) => {
    expect(filtered(filter)).toHaveLength(count)
  }) // prettier-ignore

  const wide =
    '$filter=AttendableEventStart ge 2026-01-01T00:00:00Z and AttendableEventStart le 2026-06-30T00:00:00Z'
  it.each([
    ['cast(AttendanceService.Models.OData.AttendanceRecord) eq null', 'A cast to this type has no counterpart in V3', 0],
    ['cast(Comment,AttendanceService.Models.OData.AttendanceRecord) eq null', 'Edm.String cannot be cast to AttendanceService.Models.OData.AttendanceRecord', 0],
    ['{"a":1} eq null', 'An object is not allowed here', 0],
    ['$root/People eq null', '$root is not supported', 0],
    ['Present and @moody&@moody=true and true and true and true and Mood', 'has no property Mood', 12],
    ['Present and @counted&@counted=true and AttendanceHistorys/any()', 'AttendanceHistorys/any() has no counterpart in V3', 12],
    ['Present and @known/ExternalID eq 1&@known=Learner', 'An alias cannot be followed by a path', 12],
    ['AttendanceHistorys/any(h:h/Present)', 'AttendanceHistorys/any() has no counterpart in V3', 0],
    ['Present and AttendanceHistorys/any()', 'AttendanceHistorys/any() has no counterpart in V3', 12],
    ['Learner/ExternalID eq null', 'Edm.Guid has no members', 8],
    ['Mood eq 1', 'has no property Mood', 0],
    ['$it eq null', '$it has no counterpart in V3', 0],
  ])('rejects the filter %s, and names the cause and the position', (filter, what, position) => {
    expect(() => plan(`$filter=${filter}`)).toThrow(`${what} ($filter, character ${position})`)
  }) // prettier-ignore

  it.each([
    ['$top=1', 'needs a $filter.'],
    ['$top=one', '$top'],
    ['$filter=true&$orderby=Learner,AttendanceHistorys/$count', '($orderby, character 8)'],
    ['$filter=true&$expand=x', 'has no navigation property x ($expand, character 0)'],
    ['$filter=true&$compute=Present as P', '$compute'],
    [`${wide}&$orderby=Learner`, '($orderby, character 0)'],
    ['$filter=AttendableEventStart ge 1900-01-01T00:00:00Z and AttendableEventStart le 2026-06-30T00:00:00Z', 'more than 3780 days'],
  ])('rejects the query %s', (query, message) => {
    expect(() => plan(query)).toThrow(message)
  }) // prettier-ignore
})

describe('createReadPlanner, for next links and reads by key', () => {
  it('accepts a next link only if the query has no other options', () => {
    expect([planner.tokenOf('%24skiptoken=abc'), planner.tokenOf('$filter=true')]).toEqual(['abc', undefined])
    // By the ABNF of skiptoken, the option always begins with "$".
    expect(planner.tokenOf('skiptoken=abc')).toBeUndefined()
    expect(() => planner.plan('skiptoken=abc', rules)).toThrow('needs a $filter')
    expect(() => planner.tokenOf('$skiptoken=abc&$top=5')).toThrow('($top, character 0)')
  })

  it('accepts no option but $select in a read by key', () => {
    expect(planner.selectOf('select=Learner')).toEqual(new Map([['Learner', 'all']]))
    expect([planner.selectOf(''), planner.selectOf('$select=*')]).toEqual([undefined, undefined])
    expect(() => planner.selectOf('$filter=true')).toThrow('$filter')
    expect(() => planner.selectOf('$select=Pupil')).toThrow('Pupil')
  })
})
