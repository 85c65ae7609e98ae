import * as z from 'zod'

/** The all-zero guid that asks the service for a new id (service.md 4, V3 POST rule 1). */
export const ZERO_GUID = '00000000-0000-0000-0000-000000000000'

/** A reference to another resource: its id and the name of its kind (service.md 2.10). */
export interface V3Reference {
  readonly ExternalID: string
  readonly Type?: string | null | undefined
}

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
  readonly Qualifier: V3Qualifier
}

export interface V3Qualifier {
  /** int32. */
  readonly MinutesLate: number | null | undefined
  readonly Comment: string | null | undefined
}

const guid = z.string().regex(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i)
const reference = z.object({ ExternalID: guid, Type: z.string().nullish() })

/** What a reply to a POST must hold to count as an answer: the id, and nothing of a wrong type; the rest may be left out. */
export const v3ReplySchema = z.object({
  ExternalID: guid.refine((id) => id !== ZERO_GUID),
  Present: z.boolean().optional(),
  Absent: z.boolean().optional(),
  RecordedOn: z.string().nullish(),
  ChangeProcessName: z.string().nullish(),
  AttendableEventStart: z.string().nullish(),
  RecordedBy: reference.nullish(),
  Attendee: reference.optional(),
  Event: reference.optional(),
  AttendanceCode: reference.optional(),
  Qualifier: z.object({ MinutesLate: z.int32().nullish(), Comment: z.string().nullish() }).nullish(),
})

/** The service's reply to a POST, before it is set against what was posted. */
export type V3Reply = z.infer<typeof v3ReplySchema>
