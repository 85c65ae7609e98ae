import type { MetadataLevel } from '../http-part/head.ts'
import { FLAT_TYPE } from './decode-record.ts'

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
function encodeHistories(reply: FlatRow): string {
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

/** Fields of a flat record in the order of the legacy service (product contract). */
const fields = [
  'ExternalID',
  'Present',
  'Absent',
  'RecordedOn',
  'ChangeProcessName',
  'AttendableEventStart',
  'RecordedBy',
  'Learner',
  'AttendableEvent',
  'SchoolAttendanceCode',
  'MinutesLate',
  'Comment',
] as const satisfies readonly (keyof FlatReply)[]

/** Writes a record of a collection on one line: the selected fields, or all, in the order of the legacy service. */
export function createRowEncoder(
  select: Pick<ReadonlySet<string>, 'has'> | undefined,
  metadata: MetadataLevel,
): (row: FlatRow) => string {
  // In a collection the context appears once, around the rows (OData JSON 4.5).
  const level = metadata === 'full' ? 'full' : 'none'
  if (select === undefined) return (row) => encodeFlatReply(row, '', level)
  const shown = fields.filter((name) => select.has(name))
  const first = level === 'full' ? [`"@odata.type":"${FLAT_TYPE}"`] : []
  const withHistories = select.has('AttendanceHistorys')
  return (row) => {
    const members = shown.map((name) => `"${name}":${JSON.stringify(row[name])}`)
    const last = withHistories ? [`"AttendanceHistorys":${encodeHistories(row)}`] : []
    return `{${[...first, ...members, ...last].join(',')}}`
  }
}

/** The parts of a page of flat records. */
interface FlatPage {
  /** Absolute context URL. */
  readonly context: string
  readonly metadata: MetadataLevel
  /** Encoded records. */
  readonly rows: readonly string[]
  /** The total of recorded marks, if the client requested it. */
  readonly count: number | undefined
  /** Absolute link to the next page. */
  readonly next: string | undefined
  /** Quirk `dataEnvelope`: the page in the `d` of OData V2. */
  readonly dataEnvelope: boolean
}

/** About how long a piece is: V8 allocates strings over 128 KB as large objects, which it collects less often. */
const PIECE_CHARACTERS = 65_536

/**
 * The JSON of a page (OData JSON 12), in pieces: context, count where asked for, rows, link to the next page. In the envelope the
 * rows, the count (a text there) and the link have the names of OData V2 JSON (OData V2 JSON format 4 and 8).
 */
export function encodeFlatPage({
  context,
  metadata,
  rows,
  count,
  next,
  dataEnvelope,
}: FlatPage): readonly string[] {
  const names = dataEnvelope ? oldNames : newNames
  const total = dataEnvelope ? `"${count}"` : String(count)
  const first = [
    ...(metadata === 'none' ? [] : [`"@odata.context":${JSON.stringify(context)}`]),
    ...(count === undefined ? [] : [`"${names.count}":${total}`]),
    `"${names.rows}":[`,
  ].join(',')
  const last = next === undefined ? ']' : `],"${names.next}":${JSON.stringify(next)}`
  const pieces: string[] = []
  let piece = dataEnvelope ? `{"d":{${first}` : `{${first}`
  for (const [index, row] of rows.entries()) {
    piece += index === 0 ? row : `,${row}`
    if (piece.length < PIECE_CHARACTERS) continue
    pieces.push(piece)
    piece = ''
  }
  pieces.push(`${piece}${last}${dataEnvelope ? '}}' : '}'}`)
  return pieces
}

const newNames = { count: '@odata.count', rows: 'value', next: '@odata.nextLink' } as const
const oldNames = { count: '__count', rows: 'results', next: '__next' } as const

/**
 * One record in the `d` of OData V2 (quirk `dataEnvelope`): clients of the time of datajs read only `d`. `json` is
 * the text of the record, which stays as it is inside. Errors are never enveloped: OData V2 has none around them either.
 */
export function envelopRecord(json: string): string {
  return `{"d":${json}}`
}

/** One entry of the V2 error array, before it gets its SequenceID. */
export interface V2Error {
  /** `ATT_VAL_2` and `ATT_VAL_3` are the service's own; codes of the adapter begin `ADP_` (batch-wire 5). */
  readonly code: string
  readonly message: string
}

/**
 * The JSON of a failed record: an array of errors that share one SequenceID (service.md 7). `sequenceId` is a guid that is
 * new for each record; ResourceIdentifier is empty, as in every form that service.md shows.
 */
export function encodeErrorArray(errors: readonly V2Error[], sequenceId: string): string {
  return JSON.stringify(
    errors.map(({ code, message }) => ({
      Message: message,
      ErrorCode: code,
      ResourceIdentifier: '',
      SequenceID: sequenceId,
    })),
  )
}
