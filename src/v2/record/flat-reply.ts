import type { MetadataLevel } from '../http-part/preferences.ts'
import { FLAT_TYPE } from './flat-record.ts'

/**
 * A flat V2 attendance record as the service answers and reads it (service.md 2.10 and 9). Date-times are ISO 8601 text;
 * members without a value in V3 are null.
 */
export interface FlatReply {
  readonly ExternalID: string
  readonly Present: boolean
  readonly Absent: boolean
  readonly RecordedOn: string | null
  readonly ChangeProcessName: string | null
  readonly AttendableEventStart: string | null
  /** Guid of the user, null when the system made a default mark. */
  readonly RecordedBy: string | null
  readonly Learner: string
  readonly AttendableEvent: string
  readonly SchoolAttendanceCode: string
  readonly MinutesLate: number | null
  readonly Comment: string | null
}

/** A flat record with the content of AttendanceHistorys: states of the mark, without histories of their own. */
export interface FlatRow extends FlatReply {
  /** None by default. */
  readonly histories?: readonly FlatReply[]
}

/**
 * The JSON of a flat record on one line, members in the order of the legacy service (product contract: `@odata.context`, or
 * `@odata.type` where `odata.metadata=full` was asked, then the fields). `context` is the absolute context URL.
 */
export function encodeFlatReply(reply: FlatRow, context: string, metadata: MetadataLevel): string {
  const type = metadata === 'full' ? FLAT_TYPE : undefined
  return JSON.stringify(toMembers(reply, metadata === 'minimal' ? context : undefined, type, toStates(reply)))
}

/** The JSON of AttendanceHistorys. */
export function encodeHistories(reply: FlatRow): string {
  return JSON.stringify(toStates(reply))
}

function toStates({ histories = [] }: FlatRow): readonly object[] {
  return histories.map((state) => toMembers(state))
}

/** The members in their order, for one call of JSON.stringify; undefined ones are not written. */
function toMembers(reply: FlatReply, context?: string, type?: string, histories?: readonly object[]): object {
  return {
    '@odata.context': context,
    '@odata.type': type,
    ExternalID: reply.ExternalID,
    Present: reply.Present,
    Absent: reply.Absent,
    RecordedOn: reply.RecordedOn,
    ChangeProcessName: reply.ChangeProcessName,
    AttendableEventStart: reply.AttendableEventStart,
    RecordedBy: reply.RecordedBy,
    Learner: reply.Learner,
    AttendableEvent: reply.AttendableEvent,
    SchoolAttendanceCode: reply.SchoolAttendanceCode,
    MinutesLate: reply.MinutesLate,
    Comment: reply.Comment,
    AttendanceHistorys: histories,
  }
}
