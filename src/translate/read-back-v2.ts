import type { V3Record } from '../v3/record.ts'

/** The filter that reads the mark of a learner and event on V2. */
export function toV2ReadBackFilter({ Attendee, Event }: V3Record): string {
  return `Learner eq ${Attendee.ExternalID} and AttendableEvent eq ${Event.ExternalID}`
}

/** A page of flat V2 marks in the form of V3, so that `compareReadBack` can read it; what is not a page stays as it is. */
export function toV3Page(json: unknown): unknown {
  if (!isObject(json) || !Array.isArray(json['value'])) return json
  return { value: json['value'].map((row: unknown) => (isObject(row) ? toRow(row) : row)) }
}

function toRow(flat: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { Learner, AttendableEvent, SchoolAttendanceCode, RecordedBy, MinutesLate, Comment, ...rest } = flat
  const reference = (id: unknown): unknown => (typeof id === 'string' ? { ExternalID: id } : null)
  return {
    ...rest,
    Attendee: reference(Learner),
    Event: reference(AttendableEvent),
    AttendanceCode: reference(SchoolAttendanceCode),
    RecordedBy: reference(RecordedBy),
    Qualifier: { MinutesLate, Comment },
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
