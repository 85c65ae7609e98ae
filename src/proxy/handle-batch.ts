import type { IncomingMessage } from 'node:http'

import type { Partner } from '../partners/partner.ts'
import { isGenericClient } from '../v2/index.ts'
import { answerWrites, planWrites, type WriteRequest } from '../writes/index.ts'
import { endBatchReply, openBatchReply } from './batch-reply.ts'
import { releaseAfterReply } from './byte-budget.ts'
import type { Handle } from './exchange.ts'
import { expectCurrent } from './expect-current.ts'
import { isV3Offered, noteServed } from './offer-exchange.ts'
import { readRequestBody } from './read-request-body.ts'
import { recordsUrlOf, serviceRoot } from './requested-address.ts'

/**
 * `POST …/V2/Attendance/$batch`: read, decode and plan; then the engine journals, posts, settles and answers. Nothing is posted
 * before the whole envelope was decoded and is durable; every record is answered.
 */
export const handleBatch: Handle = async (context, exchange) => {
  const { request, response, authorisation, entry, prefix, receivedMs, trial, note } = exchange
  const slices = context.slicing.open()
  const limits = context.limits()
  const { partner } = authorisation
  const held = context.byteBudget.open(context.queueKeys.of(authorisation))
  try {
    const body = await readRequestBody(request, limits.maxBodyBytes, held, slices)
    const layout = layoutFor(partner, request)
    const write: WriteRequest = {
      kind: 'batch',
      contentType: request.headers['content-type'],
      serviceHosts: partner.serviceHosts,
      context: `${serviceRoot(request, prefix)}/V2/Attendance/$metadata#AttendanceRecords/$entity`,
      layout,
      recordsUrl: recordsUrlOf(request, { kind: 'batch', layout }),
      dataEnvelope: partner.dataEnvelope,
      msgtypeResponse: partner.msgtypeResponse,
      errorMessages: partner.errorMessages,
      prefer: '',
      accept: '',
    }
    const plan = await planWrites(write, body, partner, receivedMs, limits, slices)
    note.decoded(() =>
      plan.records.map(({ key, record }) => ({ key, code: record?.AttendanceCode.ExternalID })),
    )
    const planned = { request: write, body, receivedMs, plan, slices }
    expectCurrent(entry)
    const served = isV3Offered(context, exchange) ? noteServed(context, exchange) : undefined
    const openReply = openBatchReply(response, plan)
    const answered = await answerWrites(context, authorisation, planned, served?.open(openReply) ?? openReply)
    endBatchReply(context, response, partner.id, planned, answered)
    trial.answered(answered, plan.outcomesShown)
    if (served !== undefined) served.offer(plan, answered.replayed)
    else if (context.queueKeys.of(authorisation).isAccepted())
      context.comparison.wrote(partner, entry.stage, () => plan.records.map(({ key }) => key))
  } finally {
    releaseAfterReply(held, response)
  }
}

/** The layout of the reply to a batch; `auto`: generic clients get the nested one. */
export function layoutFor(partner: Partner, request: IncomingMessage): 'flat' | 'nested' {
  if (partner.layout !== 'auto') return partner.layout
  return isGenericClient(request.headers) ? 'nested' : 'flat'
}
