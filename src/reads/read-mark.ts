import { AdapterError } from '../errors.ts'
import { pathBefore } from '../http/request-target.ts'
import type { Authorisation } from '../partners/partner.ts'
import { createRowReader, printSelection, readGuidKey, type ReadRow } from '../translate/index.ts'
import { createRowEncoder, envelopRecord, type FlatReply, readPreferences } from '../v2/index.ts'
import { readHistories } from './histories.ts'
import { jsonType, type ReadAnswer, type ReadContext, type ReadRequest, withContext } from './read-request.ts'
import { type ReadSession, readUpstream } from './read-upstream.ts'

/** Answers `AttendanceRecords(<id>)`. Throws `ADP_NOT_FOUND` for an unknown id and for a row without a mark (service.md 1.2). */
export async function readMark(
  context: ReadContext,
  client: Authorisation,
  request: ReadRequest,
  session: ReadSession,
): Promise<ReadAnswer> {
  const { partner } = client
  const mark = await findMark(context, client, session, request.path)
  // Checks the query only after the mark was found, because V2 answers 404 for a missing mark even if the query is invalid.
  const select = context.planner.selectOf(request.query)
  const [row = mark] = await readHistories(session, partner.reads, select, [mark])
  const { metadata } = readPreferences('', context.planner.formatOf(request.query) ?? request.accept)
  const url = `${pathBefore(request.address, 1)}/$metadata#AttendanceRecords${printSelection({ select })}/$entity`
  const entity = createRowEncoder(select, metadata)(row)
  // Minimal and full metadata include the context (OData JSON 4.5.1). For full metadata, the encoder has already added the type.
  const body = withContext(entity, metadata === 'none' ? undefined : url)
  return {
    body: [partner.dataEnvelope ? envelopRecord(body) : body],
    contentType: jsonType(metadata),
    rows: 1,
  }
}

/** Returns the mark with the id in the path. Throws `ADP_NOT_FOUND` and the errors of `readUpstream`. */
async function findMark(
  context: ReadContext,
  client: Authorisation,
  session: ReadSession,
  path: string,
): Promise<FlatReply> {
  const id = readGuidKey(path)
  const json = id === undefined ? undefined : await readUpstream(session, `AttendanceRecords(${id})`, '')
  const mark = json === undefined ? 'unmarked' : await toMark(context, client, session, json)
  if (mark === 'unmarked')
    throw new AdapterError(
      'ADP_NOT_FOUND',
      'There is no attendance record with this id. Nothing was read. Check the id.',
    )
  if (mark === 'unreadable' || mark.ExternalID.toLowerCase() !== id?.toLowerCase())
    throw new AdapterError(
      'ADP_UPSTREAM_PROTOCOL',
      "The service's reply is not the requested record. No record was returned. Try again later.",
    )
  return mark
}

/**
 * Converts a row of V3 to a mark. Looks up the ids of the letters in `reads.unmarkedCodes` only if every other rule accepts the row,
 * because the lookup may take a call to V3.
 */
async function toMark(
  { codes }: ReadContext,
  client: Authorisation,
  session: ReadSession,
  json: unknown,
): Promise<ReadRow> {
  const mark = createRowReader(client.partner.reads)(json)
  return typeof mark === 'object' ? createRowReader(await codes.rulesFor(session, client))(json) : mark
}

const RECORD = /^attendancerecords\(/i
type FieldValue = string | number | boolean | null | readonly unknown[]

const noContent: ReadAnswer = { body: [], contentType: undefined, rows: 1 }

/**
 * Answers `AttendanceRecords(<id>)/<field>` with the value of the field, or with 204 for null (OData protocol 11.2.4.1). `/$value` returns
 * the value as text, and `/AttendanceHistorys/$count` the number of states. Throws `ADP_NOT_FOUND` for an unknown id or field.
 */
export async function readField(
  context: ReadContext,
  client: Authorisation,
  request: ReadRequest,
  session: ReadSession,
): Promise<ReadAnswer> {
  const { partner } = client
  const { planner } = context
  const segments = request.path.replace(/\/$/, '').split('/')
  const at = segments.findLastIndex((segment) => RECORD.test(segment))
  const mark = await findMark(context, client, session, segments.slice(0, at + 1).join('/'))
  const [name = '', suffix, ...beyond] = segments.slice(at + 1)
  const [row = mark] = await readHistories(session, partner.reads, new Set([name]), [mark])
  const fields = JSON.parse(createRowEncoder(new Set([name]), 'none')(row)) as Record<string, FieldValue>
  const value = Object.hasOwn(fields, name) ? fields[name] : undefined
  const ending = suffix?.toLowerCase()
  if (value === undefined || beyond.length > 0 || !['$value', '$count', undefined].includes(ending))
    throw noSuchField()
  if (ending === '$count') {
    if (!Array.isArray(value)) throw noSuchField()
    return { body: [String(value.length)], contentType: 'text/plain', rows: 1 }
  }
  planner.checkValue(request.query)
  if (value === null) return noContent
  if (ending === '$value') {
    if (typeof value === 'object') throw noSuchField()
    return { body: [String(value)], contentType: 'text/plain', rows: 1 }
  }
  const { metadata } = readPreferences('', planner.formatOf(request.query) ?? request.accept)
  const root = pathBefore(request.address, segments.length - at)
  const url = `${root}/$metadata#AttendanceRecords(${mark.ExternalID})/${name}`
  const body = withContext(JSON.stringify({ value }), metadata === 'none' ? undefined : url)
  return {
    body: [partner.dataEnvelope ? envelopRecord(body) : body],
    contentType: jsonType(metadata),
    rows: 1,
  }
}

function noSuchField(): AdapterError {
  return new AdapterError(
    'ADP_NOT_FOUND',
    'An attendance record has no such field, or the field cannot be read in this form. Nothing was read. Check the path.',
  )
}
