import { formatInstant } from '../dates.ts'
import { referenceTypes } from './read-record-body.ts'

/** One AttendanceRecord as the service shows it (service.md 2.10). */
export interface RecordView {
  readonly externalId: string
  readonly present: boolean
  readonly absent: boolean
  /** Milliseconds; null for a session that nobody marked. */
  readonly recordedOn: number | null
  readonly changeProcessName: string | null
  readonly start: number
  /** Null when the system made the row. */
  readonly recordedBy: string | null
  readonly learner: string
  readonly event: string
  readonly code: string
  readonly minutesLate: number | null
  readonly comment: string | null
}

/** Type texts of the four references of a record. */
export interface RecordTypes {
  readonly attendee: string
  readonly event: string
  readonly code: string
}

/** The type texts of service.md 2.10. */
export const documentedTypes: RecordTypes = {
  attendee: referenceTypes.Attendee[0],
  event: referenceTypes.Event[0],
  code: referenceTypes.AttendanceCode[0],
}

const text = (value: string | null): string => (value === null ? 'null' : JSON.stringify(value))
const reference = (externalId: string, type: string): string =>
  `{"ExternalID":"${externalId}","Type":"${type}"}`

/**
 * The members of a record as JSON text without the braces, in the order of service.md 2.10. Written by hand: this is the
 * path of every POST and of every row of a page.
 */
export function recordMembers(view: RecordView, types: RecordTypes): string {
  const by = view.recordedBy === null ? 'null' : reference(view.recordedBy, referenceTypes.RecordedBy[0])
  const on = view.recordedOn === null ? 'null' : `"${formatInstant(view.recordedOn)}"`
  return (
    `"ExternalID":"${view.externalId}","Present":${view.present},"Absent":${view.absent},"RecordedOn":${on},` +
    `"ChangeProcessName":${text(view.changeProcessName)},"AttendableEventStart":"${formatInstant(view.start)}",` +
    `"RecordedBy":${by},"Attendee":${reference(view.learner, types.attendee)},` +
    `"Event":${reference(view.event, types.event)},"AttendanceCode":${reference(view.code, types.code)},` +
    `"Qualifier":{"MinutesLate":${view.minutesLate ?? 'null'},"Comment":${text(view.comment)}}`
  )
}
