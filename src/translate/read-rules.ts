import type { FlatReply } from '../v2/record/flat-reply.ts'

export interface ReadRules {
  /** True if a row without RecordedBy does not count as a recorded mark (service-facts 19; service.md 2.10). */
  readonly needsRecordedBy: boolean
  /** The ids of codes that mean "no mark", such as the code `-` (service-facts 19). */
  readonly unmarkedCodes: readonly string[]
  /** True to fill AttendanceHistorys from V3's history, which takes additional calls. If false, AttendanceHistorys is empty. */
  readonly histories: boolean
}

/** One row of a V3 read: a recorded mark, a row that V2 does not have (`unmarked`), or a row that cannot be read (`unreadable`). */
export type ReadRow = FlatReply | 'unmarked' | 'unreadable'

/**
 * Creates a function that converts V3 rows. A recorded mark becomes a flat record (service.md 9.3). A row that V3 generates for a session
 * without a mark becomes `unmarked` (service.md 1.2). Whether there is a mark never depends on `Present` (service-facts 19).
 */
export function createRowReader(rules: ReadRules): (row: unknown) => ReadRow {
  const unmarkedCodes = new Set(rules.unmarkedCodes.map((id) => id.toLowerCase()))
  return (row) => {
    if (!isObject(row)) return 'unreadable'
    const id = row['ExternalID']
    const learner = idOf(row['Attendee'])
    const event = idOf(row['Event'])
    if (typeof id !== 'string' || learner === undefined || event === undefined) return 'unreadable'
    const recordedBy = idOf(row['RecordedBy']) ?? null
    const code = idOf(row['AttendanceCode'])
    if (code === undefined || unmarkedCodes.has(code.toLowerCase())) return 'unmarked'
    if (rules.needsRecordedBy && recordedBy === null) return 'unmarked'
    const qualifier = isObject(row['Qualifier']) ? row['Qualifier'] : {}
    const minutes = qualifier['MinutesLate']
    return {
      ExternalID: id,
      Present: row['Present'] === true,
      Absent: row['Absent'] === true,
      RecordedOn: textOf(row['RecordedOn']),
      ChangeProcessName: textOf(row['ChangeProcessName']),
      AttendableEventStart: textOf(row['AttendableEventStart']),
      RecordedBy: recordedBy,
      Learner: learner,
      AttendableEvent: event,
      SchoolAttendanceCode: code,
      MinutesLate: typeof minutes === 'number' ? minutes : null,
      Comment: textOf(qualifier['Comment']),
    }
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function idOf(reference: unknown): string | undefined {
  const id = isObject(reference) ? reference['ExternalID'] : undefined
  return typeof id === 'string' ? id : undefined
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
