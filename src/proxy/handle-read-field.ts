import type { IncomingMessage, ServerResponse } from 'node:http'

import { AdapterError } from '../errors.ts'
import { pathBefore, pathOf } from '../http/request-target.ts'
import { createRowEncoder, envelopRecord, readPreferences } from '../v2/index.ts'
import type { ProxyContext } from './context.ts'
import { findMark, withContext } from './handle-read-single.ts'
import type { Authorisation } from '../partners/partner.ts'
import { readHistories } from '../reads/histories.ts'
import { addressOf } from './read-request.ts'
import { answerRead, authoriseRead, jsonType, queryOf, type ReadAnswer } from './answer-read.ts'
import type { ReadSession } from '../reads/read-upstream.ts'

const RECORD = /^attendancerecords\(/i
type FieldValue = string | number | boolean | null | readonly unknown[]

const noContent: ReadAnswer = { body: '', contentType: undefined, rows: 1 }

/**
 * `GET …/AttendanceRecords(<id>)/<field>`: the value of one field, as text with `/$value`, 204 for null (OData protocol 11.2.4.1);
 * `/AttendanceHistorys/$count`. `ADP_NOT_FOUND` for an unknown id or field.
 */
export async function handleReadField(
  context: ProxyContext,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const authorisation = await authoriseRead(context, request)
  await answerRead(context, authorisation, response, 'record', (session) =>
    readField(context, authorisation, request, session),
  )
}

async function readField(
  context: ProxyContext,
  authorisation: Authorisation,
  request: IncomingMessage,
  session: ReadSession,
): Promise<ReadAnswer> {
  const { partner } = authorisation
  const segments = pathOf(request).replace(/\/$/, '').split('/')
  const at = segments.findLastIndex((segment) => RECORD.test(segment))
  const mark = await findMark(context, authorisation, session, segments.slice(0, at + 1).join('/'))
  const [name = '', suffix, ...beyond] = segments.slice(at + 1)
  const [row = mark] = await readHistories(session, partner.reads, new Set([name]), [mark])
  const fields = JSON.parse(createRowEncoder(new Set([name]), 'none')(row)) as Record<string, FieldValue>
  const value = Object.hasOwn(fields, name) ? fields[name] : undefined
  const ending = suffix?.toLowerCase()
  if (value === undefined || beyond.length > 0 || !['$value', '$count', undefined].includes(ending))
    throw noSuchField()
  if (ending === '$count') {
    if (!Array.isArray(value)) throw noSuchField()
    return { body: String(value.length), contentType: 'text/plain', rows: 1 }
  }
  const { planner } = context.reads
  planner.checkValue(queryOf(request))
  if (value === null) return noContent
  if (ending === '$value') {
    if (typeof value === 'object') throw noSuchField()
    return { body: String(value), contentType: 'text/plain', rows: 1 }
  }
  const format = planner.formatOf(queryOf(request))
  const { metadata } = readPreferences('', format ?? request.headers.accept ?? '')
  const root = pathBefore(addressOf(request), segments.length - at)
  const url = `${root}/$metadata#AttendanceRecords(${mark.ExternalID})/${name}`
  const body = withContext(JSON.stringify({ value }), metadata === 'none' ? undefined : url)
  const answer = partner.dataEnvelope ? envelopRecord(body) : body
  return { body: answer, contentType: jsonType(metadata), rows: 1 }
}

function noSuchField(): AdapterError {
  return new AdapterError('ADP_NOT_FOUND', 'An attendance record has no such field, or no such form of it.')
}
