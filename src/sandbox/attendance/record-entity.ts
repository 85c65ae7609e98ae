import { formatInstant } from '../dates.ts'
import type { Json } from '../seed/documents/field-rules.ts'
import { referenceTypes } from './read-record-body.ts'

/** The content of one AttendanceRecord (service.md 2.10). */
export interface RecordView {
  readonly externalId: string
  readonly present: boolean
  readonly absent: boolean
  /** Milliseconds; null for a session without a mark. */
  readonly recordedOn: number | null
  readonly changeProcessName: string | null
  /** Start of the session as the service writes it. */
  readonly start: string
  /** Null when the system made the row. */
  readonly recordedBy: string | null
  readonly learner: string
  readonly event: string
  readonly code: string
  readonly minutesLate: number | null
  readonly comment: string | null
}

/** Type texts of the references of a record. */
export interface RecordTypes {
  readonly attendee: string
  readonly event: string
  readonly code: string
}

/** The two sets of type texts that the service was seen to use: as documented, and as in a later sample (service-facts 5). */
export const recordTypes: Readonly<Record<'documented' | 'later', RecordTypes>> = {
  documented: {
    attendee: referenceTypes.Attendee[0],
    event: referenceTypes.Event[0],
    code: referenceTypes.AttendanceCode[0],
  },
  later: {
    attendee: referenceTypes.Attendee[0],
    event: referenceTypes.Event[1],
    code: referenceTypes.AttendanceCode[1],
  },
}

/** The record as the service shows it, fields in the order of service.md 2.10. */
export function toRecordEntity(view: RecordView, types: RecordTypes): Record<string, Json> {
  const by = view.recordedBy
  return {
    ExternalID: view.externalId,
    Present: view.present,
    Absent: view.absent,
    RecordedOn: view.recordedOn === null ? null : formatInstant(view.recordedOn),
    ChangeProcessName: view.changeProcessName,
    AttendableEventStart: view.start,
    RecordedBy: by === null ? null : { ExternalID: by, Type: referenceTypes.RecordedBy[0] },
    Attendee: { ExternalID: view.learner, Type: types.attendee },
    Event: { ExternalID: view.event, Type: types.event },
    AttendanceCode: { ExternalID: view.code, Type: types.code },
    Qualifier: { MinutesLate: view.minutesLate, Comment: view.comment },
  }
}
