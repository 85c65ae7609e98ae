import { describe, expect, it } from 'vitest'

import { parseFilter, printFilter, QueryError } from '../../src/odata/index.ts'
import { toV3Expression } from '../../src/translate/query.ts'

const none = new Map<string, ReturnType<typeof parseFilter>>()

/** What a refused filter says, and where. */
function refusal(filter: string, aliases = none): unknown {
  try {
    return printFilter(toV3Expression(parseFilter(filter), aliases))
  } catch (cause) {
    if (!(cause instanceof QueryError)) throw cause
    return { message: cause.message.replace(/ \(.*\)$/, ''), position: cause.position }
  }
}

describe('a flat expression in nested paths', () => {
  it.each([
    ['MinutesLate in (1,2)', 'Qualifier/MinutesLate in (1,2)'],
    ['MinutesLate in [1,2]', 'Qualifier/MinutesLate in [1,2]'],
    ["cast(Comment,Edm.String) eq 'x'", "cast(Qualifier/Comment,Edm.String) eq 'x'"],
    ["Svc.AttendanceRecord/Comment eq 'x'", "Qualifier/Comment eq 'x'"],
    ['$it/Svc.AttendanceRecord/Learner eq null', 'Attendee/ExternalID eq null'],
    ['isof(Comment,Edm.String)', 'isof(Qualifier/Comment,Edm.String)'],
    ['isof(Comment,Svc.AttendanceRecord)', 'false'],
    ['isof(Svc.AttendanceRecord) and isof($it,Svc.AttendanceRecord)', 'true and true'],
    ['isof($it,Edm.String) or isof(Edm.String)', 'false or false'],
    ['RecordedBy ne null and (Present or not Absent)', 'RecordedBy/ExternalID ne null and (Present or not Absent)'],
  ])('%s', (flat, nested) => {
    expect(refusal(flat)).toBe(nested)
  }) // prettier-ignore

  it('puts the value of an alias in its place, through another alias', () => {
    const values = new Map([
      ['a', parseFilter('@b')],
      ['b', parseFilter('Comment')],
    ])
    expect(refusal("@a eq 'x'", values)).toBe("Qualifier/Comment eq 'x'")
  })

  it('takes an alias without a value for null (OData URL conventions 5.3)', () => {
    expect(refusal('RecordedBy eq @nobody and @some', new Map([['some', parseFilter('@none eq 1')]]))).toBe(
      'RecordedBy/ExternalID eq null and null eq 1',
    )
  })

  it.each([
    ['cast(Svc.Thing) eq null', 'A cast to this type', 0],
    ['cast(Comment,Svc.Thing) eq null', 'A cast to this type', 0],
    ['{"a":1} eq null', 'A JSON object', 0],
    ['$root/People eq null', '$root or a variable', 0],
    ['Present and @moody', 'Mood', 12],
    ['Present and @known/ExternalID eq 1', '@known', 12],
    ['AttendanceHistorys/any(h:h/Present)', 'AttendanceHistorys/any()', 0],
    ['Learner/ExternalID eq null', 'Learner/property', 8],
    ['Mood eq 1', 'Mood', 0],
    ['$it eq null', '$it', 0],
  ])('%s is refused by name and place', (filter, what, position) => {
    const told = refusal(
      filter,
      new Map([
        ['known', parseFilter('Learner')],
        ['moody', parseFilter('true and true and true and true and Mood')],
      ]),
    )
    expect(told).toEqual({ message: `${what} has no counterpart in V3`, position })
  })
})
