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

/** The service's reply to a POST, as far as it is read; missing members are undefined. */
export interface V3Reply {
  readonly ExternalID: string
  readonly Present?: boolean | undefined
  readonly Absent?: boolean | undefined
  readonly RecordedOn?: string | null | undefined
  readonly ChangeProcessName?: string | null | undefined
  readonly AttendableEventStart?: string | null | undefined
  readonly RecordedBy?: V3Reference | null | undefined
  readonly Attendee?: V3Reference | undefined
  readonly Event?: V3Reference | undefined
  readonly AttendanceCode?: V3Reference | undefined
  readonly Qualifier?: Partial<V3Qualifier> | null | undefined
}
