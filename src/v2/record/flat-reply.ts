import type { MetadataLevel } from '../http-part/preferences.ts'
import { FLAT_TYPE } from './flat-record.ts'

/**
 * A flat V2 attendance record as the service answers and reads it (service.md 2.10 and 9). Date-times are ISO 8601 text;
 * null stands where V3 gave nothing.
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

/** A flat record with what AttendanceHistorys is to hold: states of the mark, which have none of their own. */
export interface FlatRow extends FlatReply {
  /** None by default. */
  readonly histories?: readonly FlatReply[]
}

/**
 * The JSON of a flat record on one line, members in the order of the legacy service (product contract: `@odata.context`, or
 * `@odata.type` where `odata.metadata=full` was asked, then the fields). `context` is the absolute context URL.
 */
export function encodeFlatReply(reply: FlatRow, context: string, metadata: MetadataLevel): string {
  return `{${annotation(context, metadata)}${encodeMembers(reply)},"AttendanceHistorys":${encodeHistories(reply)}}`
}

/** The JSON of AttendanceHistorys. */
export function encodeHistories({ histories = [] }: FlatRow): string {
  return `[${histories.map((state) => `{${encodeMembers(state)}}`).join(',')}]`
}

function encodeMembers(reply: FlatReply): string {
  return (
    `"ExternalID":${JSON.stringify(reply.ExternalID)}` +
    `,"Present":${reply.Present},"Absent":${reply.Absent}` +
    `,"RecordedOn":${JSON.stringify(reply.RecordedOn)}` +
    `,"ChangeProcessName":${JSON.stringify(reply.ChangeProcessName)}` +
    `,"AttendableEventStart":${JSON.stringify(reply.AttendableEventStart)}` +
    `,"RecordedBy":${JSON.stringify(reply.RecordedBy)},"Learner":${JSON.stringify(reply.Learner)}` +
    `,"AttendableEvent":${JSON.stringify(reply.AttendableEvent)}` +
    `,"SchoolAttendanceCode":${JSON.stringify(reply.SchoolAttendanceCode)}` +
    `,"MinutesLate":${reply.MinutesLate},"Comment":${JSON.stringify(reply.Comment)}`
  )
}

function annotation(context: string, metadata: MetadataLevel): string {
  if (metadata === 'none') return ''
  if (metadata === 'full') return `"@odata.type":"${FLAT_TYPE}",`
  return `"@odata.context":${JSON.stringify(context)},`
}
