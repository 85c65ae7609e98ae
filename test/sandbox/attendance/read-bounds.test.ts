import { expect, test } from 'vitest'
import { serviceModel } from '../../../src/model/service-model.ts'
import { checkFilter, createModelIndex, parseFilter } from '../../../src/odata/index.ts'
import { boundsOf } from '../../../src/sandbox/attendance/read-bounds.ts'

const a = '11111111-1111-4111-8111-111111111111'
const b = '22222222-2222-4222-8222-222222222222'
const index = createModelIndex(serviceModel)
const day = (date: string): number => Date.parse(`${date}T00:00:00Z`)
const T1 = '2026-03-02T00:00:00Z'
const T2 = '2026-03-09T00:00:00Z'

test.each([
  [`Attendee/ExternalID eq ${a}`, { learners: new Set([a]) }],
  [`${a} eq Attendee/ExternalID`, { learners: new Set([a]) }],
  [`Attendee/ExternalID in (${a},${b})`, { learners: new Set([a, b]) }],
  [`Attendee/ExternalID eq ${a} or Attendee/ExternalID eq ${b}`, { learners: new Set([a, b]) }],
  [`Attendee/ExternalID eq ${a} and Attendee/ExternalID eq ${b}`, { learners: new Set() }],
  [
    `Event/ExternalID eq ${a} and Attendee/ExternalID eq ${b}`,
    { events: new Set([a]), learners: new Set([b]) },
  ],
  [`Event/ExternalID eq ${a} or Attendee/ExternalID eq ${b}`, {}],
  [`ExternalID eq ${a}`, { records: new Set([a]) }],
  [`AttendableEventStart eq ${T1}`, { from: day('2026-03-02'), to: day('2026-03-02') }],
  [
    `AttendableEventStart ge ${T1} and AttendableEventStart lt ${T2}`,
    { from: day('2026-03-02'), to: day('2026-03-09') },
  ],
  [
    `${T1} le AttendableEventStart and ${T2} gt AttendableEventStart`,
    { from: day('2026-03-02'), to: day('2026-03-09') },
  ],
  [
    `AttendableEventStart eq ${T1} or AttendableEventStart eq ${T2}`,
    { from: day('2026-03-02'), to: day('2026-03-09') },
  ],
  [`AttendableEventStart ge ${T1} or Present eq true`, {}],
  [`AttendableEventStart ne ${T1}`, {}],
  [`not (Attendee/ExternalID eq ${a})`, {}],
  [`Attendee/ExternalID ne ${a}`, {}],
  [`Attendee/ExternalID ne null`, {}],
  ['Present eq true and Qualifier/MinutesLate gt 3', {}],
])('%s', (filter, bounds) => {
  expect(boundsOf(checkFilter(parseFilter(filter), 'Svc.AttendanceRecord', index))).toEqual(bounds)
})
