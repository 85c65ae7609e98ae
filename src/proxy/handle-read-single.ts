import type { IncomingMessage, ServerResponse } from 'node:http'

import { AdapterError } from '../errors.ts'
import { createRowReader } from '../translate/index.ts'
import { createRowEncoder, encodeFlatReply, envelopRecord, readPreferences } from '../v2/index.ts'
import type { ProxyContext } from './context.ts'
import type { Authorisation } from './partner.ts'
import { readHistories } from './read-histories.ts'
import { serviceRoot } from './read-request.ts'
import { pathOf } from '../http/request-target.ts'
import { answerRead, authoriseRead, queryOf, type ReadAnswer } from './read-session.ts'
import { type ReadSession, readUpstream } from './read-upstream.ts'

const KEY = /\((?:ExternalID=)?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\)\/?$/i

/**
 * `GET …/V2/Attendance/AttendanceRecords(<id>)`: the recorded mark in the flat form. `ADP_NOT_FOUND` for an id that V3 does not
 * know, and for the row of a session that nobody marked: V2 had none (service.md 1.2).
 */
export async function handleReadSingle(
  context: ProxyContext,
  request: IncomingMessage,
  response: ServerResponse,
  prefix: string,
): Promise<void> {
  const authorisation = await authoriseRead(context, request)
  await answerRead(context, authorisation, response, 'record', (session) =>
    readRecord(context, authorisation, request, prefix, session),
  )
}

async function readRecord(
  context: ProxyContext,
  { partner }: Authorisation,
  request: IncomingMessage,
  prefix: string,
  session: ReadSession,
): Promise<ReadAnswer> {
  const select = context.reads.planner.selectOf(queryOf(request))
  const id = KEY.exec(pathOf(request))?.[1]
  const json = id === undefined ? undefined : await readUpstream(session, `AttendanceRecords(${id})`, '')
  const mark = json === undefined ? 'unmarked' : createRowReader(partner.reads)(json)
  if (mark === 'unmarked')
    throw new AdapterError('ADP_NOT_FOUND', 'There is no attendance record with this id.')
  if (mark === 'unreadable' || mark.ExternalID.toLowerCase() !== id?.toLowerCase())
    throw new AdapterError(
      'ADP_UPSTREAM_PROTOCOL',
      "The service's answer is not the record that was asked for.",
    )
  const [row = mark] = await readHistories(session, partner.reads, select, [mark])
  const { metadata } = readPreferences('', request.headers.accept ?? '')
  const url = `${serviceRoot(request, prefix)}/V2/Attendance/$metadata#AttendanceRecords/$entity`
  const body =
    select === undefined
      ? encodeFlatReply(row, url, metadata)
      : withContext(createRowEncoder(select, metadata)(row), metadata === 'minimal' ? url : undefined)
  return { body: partner.dataEnvelope ? envelopRecord(body) : body, metadata, rows: 1 }
}

function withContext(entity: string, url: string | undefined): string {
  if (url === undefined) return entity
  const rest = entity.slice(1)
  return `{"@odata.context":${JSON.stringify(url)}${rest === '}' ? '' : ','}${rest}`
}
