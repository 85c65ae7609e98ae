import type { RecordDiff } from '../../../src/compare/diff/compare-pair.ts'
import type { FlatReply } from '../../../src/v2/record/flat-reply.ts'

const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, '0')

/** Returns a GUID whose first part shows the kind of object. */
export const guid = (kind: number, index: number): string =>
  `${hex(kind, 8)}-0000-4000-8000-${hex(index, 12)}`

/** Returns a mark of learner number `index` at session number `index`, with every member that V2 returns and with `changes`. */
export function markRow(
  index: number,
  changes: Partial<Record<keyof FlatReply, unknown>> = {},
): Record<string, unknown> {
  return {
    ExternalID: guid(0xa, index),
    Present: true,
    Absent: false,
    RecordedOn: '2026-03-02T09:05:11Z',
    ChangeProcessName: 'Acme Register',
    AttendableEventStart: '2026-03-02T08:45:00Z',
    RecordedBy: guid(0xb, 1),
    Learner: guid(0xc, index),
    AttendableEvent: guid(0xd, index),
    SchoolAttendanceCode: guid(0xe, 1),
    MinutesLate: null,
    Comment: null,
    AttendanceHistorys: [],
    ...changes,
  }
}

/** Describes each record by its verdict, differences and equivalences. */
export const outline = (diffs: readonly RecordDiff[]): readonly string[] =>
  diffs.map(({ comparison: { verdict, differences, equivalences } }) =>
    [
      verdict,
      ...differences.map(({ path, kind, v2Class, v3Class }) => `${path} ${kind} ${v2Class} ${v3Class}`),
      ...equivalences.map(({ rule, path }) => `${rule} ${path}`),
    ].join(', '),
  )
