/** The constant of `@odata.type` in a flat record (service.md 4.2). */
export const FLAT_TYPE = '#AttendanceService.Models.OData.AttendanceRecord'

/** A member of a posted record that is not of the flat write form; `raw` is its JSON text, so lexemes survive. */
export interface UnmappedField {
  readonly name: string
  readonly raw: string
}

/**
 * A flat V2 attendance record as a client posts it (service.md 4.2). A missing `MinutesLate` or `Comment` is undefined and
 * differs from null. Guids have 36 characters, in the case in which they were written.
 */
export interface FlatRecord {
  readonly Present: boolean
  readonly Absent: boolean
  readonly Learner: string
  readonly AttendableEvent: string
  readonly SchoolAttendanceCode: string
  /** int32. */
  readonly MinutesLate: number | null | undefined
  readonly Comment: string | null | undefined
  /** Other members, in order; undefined when there are none. */
  readonly unmapped: readonly UnmappedField[] | undefined
  /** How many members were written in another form than JSON's, which V2's parser reads as well; undefined: none. */
  readonly converted?: number | undefined
}

/** A fault of one posted record; a record may have several. */
export interface RecordFault {
  readonly code:
    'ADP_JSON' | 'ADP_CHARSET' | 'ADP_FIELD' | 'ADP_UNMAPPED_FIELD' | 'ADP_METHOD' | 'ADP_RECORD_LIMIT'
  /** Names the member and the rule, never the value. */
  readonly message: string
}

export type RecordResult =
  | { readonly record: FlatRecord; readonly faults: undefined }
  | { readonly record: undefined; readonly faults: readonly RecordFault[] }
