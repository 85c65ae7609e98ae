import { isUtf8 } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'

import { decodeRecord, readPreferences, type RecordResult } from '../v2/index.ts'
import type { ProxyContext } from './context.ts'
import { planRecord } from './plan.ts'
import { checkHost, readRequest, serviceRoot } from './read-request.ts'
import { createSending } from './sending.ts'
import { settleFault, settleRecord } from './settle.ts'

/** One record is never larger than this. */
const MAX_RECORD_BYTES = 1_048_576
const notUtf8: RecordResult = {
  record: undefined,
  faults: [{ code: 'ADP_CHARSET', message: 'The record is not valid UTF-8.' }],
}

/**
 * `POST …/V2/Attendance/AttendanceRecords` with one flat record: what `$batch` does, for one. 201 with the flat record, or
 * the status and error array that its part would have had.
 */
export async function handleRecord(
  context: ProxyContext,
  request: IncomingMessage,
  response: ServerResponse,
  prefix: string,
): Promise<void> {
  const startedMs = context.nowMs()
  checkHost(request)
  const authorisation = await context.authorise(request)
  const { partner } = authorisation
  const { body, held } = await readRequest(request, MAX_RECORD_BYTES, context.byteBudget)
  context.byteBudget.release(held)
  const { record: flat, faults } = isUtf8(body) ? decodeRecord(body.toString('utf8')) : notUtf8
  const answering = {
    contentId: undefined,
    contentIdInHttp: false,
    changeset: undefined,
    ...readPreferences([request.headers['prefer'] ?? []].flat().join(), request.headers.accept ?? ''),
  }
  const { record: planned, unmapped } = planRecord(
    answering,
    flat,
    faults,
    partner,
    new Date(startedMs).toISOString(),
  )
  const texts = {
    context: `${serviceRoot(request, prefix)}/V2/Attendance/$metadata#AttendanceRecords/$entity`,
    newId: context.newId,
    dataEnvelope: partner.dataEnvelope,
  }
  const sending = createSending(context, authorisation)
  const outcome = await sending.sendOne(planned)
  const reply = outcome === undefined ? settleFault(planned, texts) : settleRecord(planned, outcome, texts)
  response.statusCode = reply.status
  const timing = sending.timing()
  if (timing !== undefined) response.setHeader('Server-Timing', timing)
  if (reply.json !== undefined) response.setHeader('Content-Type', 'application/json; odata.metadata=minimal')
  response.end(reply.json)
  context.events.batchAnswered({
    accepted: 0,
    refused: 0,
    notApplied: 0,
    unknown: 0,
    [outcome?.kind ?? 'refused']: 1,
    partner: partner.id,
    records: 1,
    changesets: 0,
    outcomesShown: true,
    unmappedFields: unmapped,
    durationMs: context.nowMs() - startedMs,
    queuedMs: sending.queuedMs(),
  })
}
