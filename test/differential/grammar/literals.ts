import fc from 'fast-check'

import { comments, type Samples } from './samples.ts'

/** The types of the fields of a flat record, and of the results of OData functions. */
export const families = ['guid', 'bool', 'string', 'number', 'instant', 'date', 'time', 'duration'] as const
export type Family = (typeof families)[number]
export type ByFamily = Readonly<Record<Family, fc.Arbitrary<string>>>

/** The fields of the flat record by type. No field has one of the last three types, which only functions return. */
export const fields: Readonly<Record<Family, readonly string[]>> = {
  guid: ['Learner', 'AttendableEvent', 'SchoolAttendanceCode', 'RecordedBy', 'ExternalID'],
  bool: ['Present', 'Absent'],
  string: ['Comment', 'ChangeProcessName'],
  number: ['MinutesLate'],
  instant: ['AttendableEventStart', 'RecordedOn'],
  date: [],
  time: [],
  duration: [],
}
export const allFields = Object.values(fields).flat()

const DAY_MS = 86_400_000
export const formatTime = (ms: number): string => new Date(ms).toISOString().replace('.000Z', 'Z')
export const quote = (text: string): string => `'${text.replaceAll("'", "''")}'`

const upper = (text: string): string => text.toUpperCase()
const clock = (hour: number, minute: number): string =>
  `${String(hour).padStart(2, '0')}:${String(minute).padStart(2, '0')}`
const clocks = fc
  .tuple(fc.integer({ min: 0, max: 23 }), fc.integer({ min: 0, max: 59 }))
  .map(([h, m]) => clock(h, m))

/** Generates literals in the spellings of the ABNF (OData ABNF 7). */
export function createLiterals(samples: Samples): ByFamily {
  const { learners, events, codes, marks, starts, fromMs, toMs } = samples
  const ids = [learners, events, codes, marks].map((list) => fc.constantFrom(...list))
  const guid = fc.oneof(...ids, fc.uuid(), fc.constant('00000000-0000-0000-0000-000000000000'))
  const day = fc
    .integer({ min: 0, max: Math.round((toMs - fromMs) / DAY_MS) })
    .map((n) => fromMs + n * DAY_MS)
  const moment = fc.oneof(
    fc.constantFrom(...starts),
    day.map(formatTime),
    fc.tuple(day, clocks).map(([ms, at]) => `${formatTime(ms).slice(0, 10)}T${at}Z`),
    fc.tuple(day, clocks, fc.constantFrom('Z', 'z', '+01:00', '-05:30', '+00:00')).map(([ms, at, offset]) => `${formatTime(ms).slice(0, 10)}T${at}:00.5${offset}`),
    fc.constantFrom('0001-01-01T00:00:00Z', '9999-12-31T23:59:59Z', '2026-03-29T01:30:00+01:00', '2026-02-28t23:59:60Z'),
  ) // prettier-ignore
  return {
    guid: fc.oneof({ weight: 5, arbitrary: guid }, { weight: 1, arbitrary: guid.map(upper) }),
    bool: fc.constantFrom('true', 'false', 'true', 'false', 'True', 'FALSE'),
    string: fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom(...comments).map(quote) },
      { weight: 3, arbitrary: fc.constantFrom('a', 'at', 'LATE', 'x', 'ß', ' ', '%', "'").map(quote) },
      { weight: 1, arbitrary: fc.string({ unit: 'grapheme', maxLength: 12 }).map(quote) },
    ),
    number: fc.oneof(
      fc.integer({ min: -3, max: 40 }).map(String),
      fc.constantFrom('2147483647', '-2147483648', '9223372036854775807', '0.5', '-0', '1e2', '5.0', '+7', '10.25', 'INF', '-INF', 'NaN', '00012', '1E-3'),
    ), // prettier-ignore
    instant: moment,
    date: fc.oneof(
      day.map((ms) => formatTime(ms).slice(0, 10)),
      fc.constantFrom('2024-02-29', '-0001-01-01'),
    ),
    time: fc.oneof(
      clocks,
      clocks.map((at) => `${at}:30.25`),
    ),
    duration: fc.constantFrom(
      "duration'P1D'", "duration'PT1H'", "duration'-PT30M'", "duration'P1DT2H3M4.5S'", "Duration'PT0S'", "duration'P90D'",
    ), // prettier-ignore
  }
}
