import { AdapterError } from '../errors.ts'
import { pathBefore } from '../http/request-target.ts'
import type { Authorisation } from '../partners/partner.ts'
import { createRowEncoder, envelopRecord, readPreferences } from '../v2/index.ts'
import type { ReadContext } from './context.ts'
import { readHistories } from './histories.ts'
import { findMark } from './read-mark.ts'
import { jsonType, type ReadAnswer, type ReadRequest, withContext } from './read-request.ts'
import type { ReadSession } from './read-upstream.ts'

const RECORD = /^attendancerecords\(/i
type FieldValue = string | number | boolean | null | readonly unknown[]

const noContent: ReadAnswer = { body: [], contentType: undefined, rows: 1 }

/**
 * `AttendanceRecords(<id>)/<field>`: the value of one field, as text with `/$value`, 204 for null (OData protocol 11.2.4.1);
 * `/AttendanceHistorys/$count`. `ADP_NOT_FOUND` for an unknown id or field.
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
  return new AdapterError('ADP_NOT_FOUND', 'An attendance record has no such field, or no such form of it.')
}
