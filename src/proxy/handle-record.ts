import { answerWrites, type OpenReply, planWrites, type WriteRequest } from '../writes/index.ts'
import { releaseAfterReply } from './byte-budget.ts'
import type { Handle } from './exchange.ts'
import { expectCurrent } from './expect-current.ts'
import { isV3Offered, noteServed } from './offer-exchange.ts'
import { readRequestBody } from './read-request-body.ts'
import { recordsUrlOf, serviceRoot } from './requested-address.ts'
import { createRecordReply } from './reply-stream.ts'

/**
 * `POST …/V2/Attendance/AttendanceRecords` with one flat record: what `$batch` does, for one. 201 with the flat record, or
 * the status and error array that its part would have had.
 */
export const handleRecord: Handle = async (context, exchange) => {
  const { request, response, authorisation, entry, prefix, receivedMs, trial, note } = exchange
  const slices = context.slicing.open()
  const limits = context.limits()
  const { partner } = authorisation
  const held = context.byteBudget.open(context.queueKeys.of(authorisation))
  try {
    const body = await readRequestBody(request, limits.maxPartBytes, held, slices)
    const write: WriteRequest = {
      kind: 'record',
      contentType: request.headers['content-type'],
      serviceHosts: undefined,
      context: `${serviceRoot(request, prefix)}/V2/Attendance/$metadata#AttendanceRecords/$entity`,
      layout: 'flat',
      recordsUrl: recordsUrlOf(request, { kind: 'record', layout: 'flat' }),
      dataEnvelope: partner.dataEnvelope,
      msgtypeResponse: partner.msgtypeResponse,
      errorMessages: partner.errorMessages,
      prefer: [request.headers['prefer'] ?? []].flat().join(),
      accept: request.headers.accept ?? '',
    }
    const plan = await planWrites(write, body, partner, receivedMs, limits, slices)
    note.decoded(() =>
      plan.records.map(({ key, record }) => ({ key, code: record?.AttendanceCode.ExternalID })),
    )
    const served = isV3Offered(context, exchange) ? noteServed(context, exchange) : undefined
    const openReply: OpenReply = ({ recordsUrl }, _newId, timing) =>
      createRecordReply(response, recordsUrl, timing)
    expectCurrent(entry)
    const answered = await answerWrites(
      context,
      authorisation,
      { request: write, body, receivedMs, plan, slices },
      served?.open(openReply) ?? openReply,
    )
    const { tally, queuedMs, replayed } = answered
    trial.answered(answered, true)
    served?.offer(plan, replayed)
    context.events.batchAnswered({
      ...tally,
      partner: partner.id,
      records: 1,
      changesets: 0,
      outcomesShown: true,
      unmappedFields: plan.unmappedFields,
      convertedFields: plan.convertedFields,
      replayed,
      durationMs: context.nowMs() - receivedMs,
      queuedMs,
    })
  } finally {
    releaseAfterReply(held, response)
  }
}
