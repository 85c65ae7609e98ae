import type { IncomingMessage, ServerResponse } from 'node:http'

import { checkHost } from '../http/host.ts'
import { releaseAfterReply } from './byte-budget.ts'
import type { ProxyContext } from './context.ts'
import { readRequest, serviceRoot } from './read-request.ts'
import { answerWrites } from '../writes/answer-writes.ts'
import { planWrites } from '../writes/plan.ts'
import { createRecordReply } from './reply-stream.ts'
import type { WriteRequest } from '../writes/stored-request.ts'

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
  const receivedMs = context.nowMs()
  const slices = context.slicing.open()
  checkHost(request)
  const authorisation = await context.authorise(request)
  const { partner } = authorisation
  const held = context.byteBudget.open(context.queueKeys.of(authorisation))
  try {
    const body = await readRequest(request, context.limits.maxPartBytes, held, slices)
    const write: WriteRequest = {
      kind: 'record',
      contentType: request.headers['content-type'],
      serviceHosts: undefined,
      context: `${serviceRoot(request, prefix)}/V2/Attendance/$metadata#AttendanceRecords/$entity`,
      layout: 'flat',
      dataEnvelope: partner.dataEnvelope,
      msgtypeResponse: partner.msgtypeResponse,
      prefer: [request.headers['prefer'] ?? []].flat().join(),
      accept: request.headers.accept ?? '',
    }
    const plan = await planWrites(write, body, partner, receivedMs, context.limits, slices)
    const { tally, queuedMs, replayed } = await answerWrites(
      context,
      authorisation,
      { request: write, body, receivedMs, plan, slices },
      (_form, _newId, timing) => createRecordReply(response, timing),
    )
    context.events.batchAnswered({
      ...tally,
      partner: partner.id,
      records: 1,
      changesets: 0,
      outcomesShown: true,
      unmappedFields: plan.unmappedFields,
      replayed,
      durationMs: context.nowMs() - receivedMs,
      queuedMs,
    })
  } finally {
    releaseAfterReply(held, response)
  }
}
