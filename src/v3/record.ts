import * as z from 'zod'

import { isGuid } from '../odata/index.ts'

/** The all-zero guid that asks the service for a new id (service.md 4, V3 POST rule 1). */
export const ZERO_GUID = '00000000-0000-0000-0000-000000000000'

const id = z.string().refine(isGuid)
const text = z.string().nullish()
/** A reference to another resource: its id and the name of its kind (service.md 2.10). */
const reference = z.object({ ExternalID: id, Type: text })

/** The service's reply to a POST: it has an id and no member of a wrong type; the rest may be missing. */
export const v3ReplySchema = z.object({
  ExternalID: id.refine((own) => own !== ZERO_GUID),
  Present: z.boolean().optional(),
  Absent: z.boolean().optional(),
  RecordedOn: text,
  ChangeProcessName: text,
  AttendableEventStart: text,
  RecordedBy: reference.nullish(),
  Attendee: reference.optional(),
  Event: reference.optional(),
  AttendanceCode: reference.optional(),
  Qualifier: z.object({ MinutesLate: z.int32().nullish(), Comment: text }).nullish(),
})

export type V3Reply = Readonly<z.infer<typeof v3ReplySchema>>
export type V3Reference = Readonly<z.infer<typeof reference>>

/** A nested V3 attendance record (service.md 2.10). Undefined members are absent from the JSON, null ones are null. */
export interface V3Record {
  readonly ExternalID: string
  readonly Present: boolean
  readonly Absent: boolean
  /** ISO 8601 in UTC with a trailing Z. */
  readonly RecordedOn: string | null | undefined
  readonly ChangeProcessName: string | null | undefined
  /** ISO 8601; the service knows it from the event, so a writer leaves it out. */
  readonly AttendableEventStart: string | null | undefined
  /** Null when the system made a default mark. */
  readonly RecordedBy: V3Reference | null | undefined
  readonly Attendee: V3Reference
  readonly Event: V3Reference
  readonly AttendanceCode: V3Reference
  readonly Qualifier: {
    /** int32. */
    readonly MinutesLate: number | null | undefined
    readonly Comment: string | null | undefined
  }
}

/** Which members a write body has: all of service.md 2.10, or the published minimum (service-facts 6). */
export type BodyProfile = 'full' | 'minimal'

/** The JSON body of a V3 POST; the members are in the service's order, whatever the order in the record. */
export function encodeRecord(record: V3Record, profile: BodyProfile): string {
  const { Attendee, Event, AttendanceCode, Qualifier } = record
  if (profile === 'minimal') return JSON.stringify({ Attendee, Event, AttendanceCode, Qualifier })
  const { ExternalID, Present, Absent, RecordedOn, ChangeProcessName, AttendableEventStart, RecordedBy } =
    record
  return JSON.stringify({
    ExternalID,
    Present,
    Absent,
    RecordedOn,
    ChangeProcessName,
    AttendableEventStart,
    RecordedBy,
    Attendee,
    Event,
    AttendanceCode,
    Qualifier,
  })
}
