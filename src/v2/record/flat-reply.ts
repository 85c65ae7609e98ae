import type { MetadataLevel } from '../http-part/head.ts'
import { FLAT_TYPE } from './decode-record.ts'

/** A flat attendance record as V2 returns it (service.md 2.10, 9). Date-times are ISO 8601 text. Members without a value are null. */
export interface FlatReply {
  readonly ExternalID: string
  readonly Present: boolean
  readonly Absent: boolean
  readonly RecordedOn: string | null
  readonly ChangeProcessName: string | null
  readonly AttendableEventStart: string | null
  /** The guid of the user, or null if the system made a default mark. */
  readonly RecordedBy: string | null
  readonly Learner: string
  readonly AttendableEvent: string
  readonly SchoolAttendanceCode: string
  readonly MinutesLate: number | null
  readonly Comment: string | null
}

/** A flat record with its AttendanceHistorys: one flat record, without histories of its own, for each state of the mark. */
export interface FlatRow extends FlatReply {
  readonly histories?: readonly FlatReply[]
}

/**
 * Returns the JSON of a flat record on one line, with the members in the order of the legacy service (product contract). The first member
 * is `@odata.context` for the metadata level `minimal`, and `@odata.type` for `full`. Level `none` has neither. `context` is the absolute
 * context URL.
 */
export function encodeFlatReply(reply: FlatRow, context: string, metadata: MetadataLevel): string {
  const type = metadata === 'full' ? FLAT_TYPE : undefined
  return JSON.stringify(toMembers(reply, metadata === 'minimal' ? context : undefined, type, toStates(reply)))
}

function encodeHistories(reply: FlatRow): string {
  return JSON.stringify(toStates(reply))
}

function toStates({ histories = [] }: FlatRow): readonly object[] {
  return histories.map((state) => toMembers(state))
}

/** Returns the members in order. `JSON.stringify` omits members that are `undefined`. */
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

/** Creates a function that encodes a row of a collection on one line, with the selected fields, or with all if `select` is `undefined`. */
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

interface FlatPage {
  readonly context: string
  readonly metadata: MetadataLevel
  readonly rows: readonly string[]
  /** The number of recorded marks, or `undefined` if the client did not request a count. */
  readonly count: number | undefined
  readonly next: string | undefined
  /** True to wrap the page in the member `d` of OData V2 (quirk `dataEnvelope`). */
  readonly dataEnvelope: boolean
}

/** Approximate length of a piece in characters. Kept small, because V8 collects strings over 128 KB less often. */
const PIECE_CHARACTERS = 65_536

/** Encodes a page (OData JSON 12) in pieces. `dataEnvelope` changes the names, and makes the count a string (OData V2 JSON 4 and 8). */
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

/** Wraps the JSON of a record in the member `d` (quirk `dataEnvelope`), because datajs clients read only `d`. Errors are not wrapped. */
export function envelopRecord(json: string): string {
  return `{"d":${json}}`
}

export interface V2Error {
  /** `ATT_VAL_2` and `ATT_VAL_3` are the service's own codes. The adapter's codes begin with `ADP_` (batch-wire 5). */
  readonly code: string
  readonly message: string
}

/** Returns the errors of one record as JSON (service.md 7), with an empty ResourceIdentifier. `sequenceId` must be a new guid. */
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
