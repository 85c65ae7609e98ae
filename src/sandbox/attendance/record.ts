import { z } from 'zod'

import type { ErrorDetail } from '../../errors.ts'
import { formatInstant } from '../dates.ts'
import { zeroGuid } from '../identity.ts'
import { fields, type Json, readMembers, reference } from '../json.ts'

/** The content of an AttendanceRecord (service.md 2.10). */
export interface RecordView {
  readonly externalId: string
  readonly present: boolean
  readonly absent: boolean
  /** Milliseconds since 1970, or null for a session without a mark. */
  readonly recordedOn: number | null
  readonly changeProcessName: string | null
  /** The start of the session as text, in the form in which the service writes times. */
  readonly start: string
  /** Null if the service itself created the row. */
  readonly recordedBy: string | null
  readonly learner: string
  readonly event: string
  readonly code: string
  readonly minutesLate: number | null
  readonly comment: string | null
}

/** A mark as it was posted to V2 or V3, with ids in lower case. */
export interface MarkWrite extends Omit<
  RecordView,
  'present' | 'absent' | 'recordedOn' | 'start' | 'recordedBy'
> {
  /** The posted value, or `undefined` if the attendance code determines the value. */
  readonly present: boolean | undefined
  readonly absent: boolean | undefined
  /** Milliseconds since 1970, or `undefined` for the current time. */
  readonly recordedOn: number | undefined
  readonly recordedBy: string
}

/** The types that a posted reference may name, with the documented type first (service.md 2.10; service-facts 5). */
const referenceTypes = {
  Attendee: ['Learner.Identifier'],
  Event: ['Attendance.AttendanceSession', 'Attendance.StatutoryAttendanceSession'],
  AttendanceCode: ['Attendance.Lookup', 'Attendance.Lookup.AttendanceCode'],
  RecordedBy: ['AuthorisedUser'],
} as const

interface RecordTypes {
  readonly attendee: string
  readonly event: string
  readonly code: string
}

const { Attendee, Event, AttendanceCode } = referenceTypes
const documentedTypes: RecordTypes = { attendee: Attendee[0], event: Event[0], code: AttendanceCode[0] }

/** Converts a record to an entity of V3, with the fields in the order of service.md 2.10. */
export function toRecordEntity(view: RecordView, types = documentedTypes): Record<string, Json> {
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

const typed = (types: readonly [string, ...string[]]) =>
  reference(
    { Type: z.enum(types, `must be ${types.join(' or ')}`).nullish() },
    'ExternalID and Type',
  ).transform(({ ExternalID, Type }) => ({ ExternalID, Type: Type ?? types[0] }))

/** The schema of a posted record in the full or the minimal form (service.md 2.10; service-facts 6). */
const schema = z
  .strictObject({
    ExternalID: fields.guid,
    Present: fields.boolean,
    Absent: fields.boolean,
    RecordedOn: fields.instant,
    ChangeProcessName: fields.string,
    // The form of this field is checked, but the value is ignored, because the calendar determines the start of the session.
    AttendableEventStart: fields.instant,
    RecordedBy: typed(referenceTypes.RecordedBy).nullish(),
    Attendee: typed(referenceTypes.Attendee),
    Event: typed(referenceTypes.Event),
    AttendanceCode: typed(referenceTypes.AttendanceCode),
    Qualifier: z.object({ MinutesLate: fields.int32, Comment: fields.string }, 'must be an object').nullish(),
    fabricated: z.unknown().optional(),
  })
  .refine(({ Present, Absent }) => Present !== true || Absent !== true, {
    path: ['Present'],
    message: 'and Absent cannot both be true',
  })

/**
 * Parses a posted record and the types of its references. Returns every validation error if the record is invalid. `RecordedBy` defaults to
 * `actorId`.
 */
export function readRecordBody(
  body: unknown,
  actorId: string,
): { readonly faults: readonly ErrorDetail[] } | { readonly write: MarkWrite; readonly types: RecordTypes } {
  const read = readMembers(schema, body)
  if ('faults' in read) return read
  const { Attendee, Event, AttendanceCode, RecordedBy, Qualifier, ...plain } = read.value
  return {
    write: {
      externalId: plain.ExternalID ?? zeroGuid,
      learner: Attendee.ExternalID,
      event: Event.ExternalID,
      code: AttendanceCode.ExternalID,
      present: plain.Present ?? undefined,
      absent: plain.Absent ?? undefined,
      minutesLate: Qualifier?.MinutesLate ?? null,
      comment: Qualifier?.Comment ?? null,
      recordedOn: plain.RecordedOn ?? undefined,
      changeProcessName: plain.ChangeProcessName ?? null,
      recordedBy: RecordedBy?.ExternalID ?? actorId,
    },
    types: { attendee: Attendee.Type, event: Event.Type, code: AttendanceCode.Type },
  }
}
