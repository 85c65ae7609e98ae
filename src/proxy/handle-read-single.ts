import type { IncomingMessage, ServerResponse } from 'node:http'

import { AdapterError } from '../errors.ts'
import { createRowReader, readGuidKey, type ReadRow } from '../translate/index.ts'
import { createRowEncoder, envelopRecord, type FlatReply, readPreferences } from '../v2/index.ts'
import type { ProxyContext } from './context.ts'
import type { Authorisation } from '../partners/partner.ts'
import { readHistories } from '../reads/histories.ts'
import { pathBefore, pathOf } from '../http/request-target.ts'
import { addressOf } from './read-request.ts'
import { answerRead, authoriseRead, jsonType, queryOf, type ReadAnswer } from './answer-read.ts'
import { type ReadSession, readUpstream } from '../reads/read-upstream.ts'

/**
 * `GET …/V2/Attendance/AttendanceRecords(<id>)`: the recorded mark in the flat form. `ADP_NOT_FOUND` for an id that V3 does not
 * know, and for the row of a session that nobody marked: V2 had none (service.md 1.2).
 */
export async function handleReadSingle(
  context: ProxyContext,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const authorisation = await authoriseRead(context, request)
  await answerRead(context, authorisation, response, 'record', (session) =>
    readRecord(context, authorisation, request, session),
  )
}

async function readRecord(
  context: ProxyContext,
  authorisation: Authorisation,
  request: IncomingMessage,
  session: ReadSession,
): Promise<ReadAnswer> {
  const { partner } = authorisation
  const mark = await findMark(context, authorisation, session, pathOf(request))
  // As the legacy face: a mark that is not there is 404, whatever else is wrong.
  const select = context.reads.planner.selectOf(queryOf(request))
  const [row = mark] = await readHistories(session, partner.reads, select, [mark])
  const format = context.reads.planner.formatOf(queryOf(request))
  const { metadata } = readPreferences('', format ?? request.headers.accept ?? '')
  const url = `${pathBefore(addressOf(request), 1)}/$metadata#AttendanceRecords/$entity`
  const entity = createRowEncoder(select, metadata)(row)
  // Full metadata has the type besides the context, not in its place (OData JSON 4.5.1).
  const body = withContext(entity, metadata === 'none' ? undefined : url)
  const answer = partner.dataEnvelope ? envelopRecord(body) : body
  return { body: answer, contentType: jsonType(metadata), rows: 1 }
}

/** The recorded mark whose key ends a decoded path. Errors: `ADP_NOT_FOUND`, those of `readUpstream`. */
export async function findMark(
  context: ProxyContext,
  authorisation: Authorisation,
  session: ReadSession,
  path: string,
): Promise<FlatReply> {
  const id = readGuidKey(path)
  const json = id === undefined ? undefined : await readUpstream(session, `AttendanceRecords(${id})`, '')
  const mark = json === undefined ? 'unmarked' : await readMark(context, authorisation, session, json)
  if (mark === 'unmarked')
    throw new AdapterError('ADP_NOT_FOUND', 'There is no attendance record with this id.')
  if (mark === 'unreadable' || mark.ExternalID.toLowerCase() !== id?.toLowerCase())
    throw new AdapterError(
      'ADP_UPSTREAM_PROTOCOL',
      "The service's answer is not the record that was asked for.",
    )
  return mark
}

/** The mark in V3's answer; what is none by the rules that need no look-up costs none. */
async function readMark(
  { reads: { codes } }: ProxyContext,
  client: Authorisation,
  session: ReadSession,
  json: unknown,
): Promise<ReadRow> {
  const mark = createRowReader(client.partner.reads)(json)
  return typeof mark === 'object' ? createRowReader(await codes.rulesFor(session, client))(json) : mark
}

/** Adds the context to the JSON of an entity or value. */
export function withContext(entity: string, url: string | undefined): string {
  if (url === undefined) return entity
  const rest = entity.slice(1)
  return `{"@odata.context":${JSON.stringify(url)}${rest === '}' ? '' : ','}${rest}`
}
