import type { IncomingMessage, ServerResponse } from 'node:http'

import { AdapterError } from '../errors.ts'
import type { BatchTally } from '../observability/events.ts'
import { type Batch, createBatchEncoder, decodeBatch, encodeMismatch } from '../v2/index.ts'
import type { PostOutcome } from '../v3/index.ts'
import type { ProxyContext } from './context.ts'
import type { Authorisation, Partner } from './partner.ts'
import { type Plan, planBatch } from './plan.ts'
import { checkHost, hostName, readRequest, serviceRoot } from './read-request.ts'
import { ReplyStream } from './reply-stream.ts'
import { createSending, overBudgetSeconds, type Sending } from './sending.ts'
import { settleFault, settleRecord } from './settle.ts'

/**
 * `POST …/V2/Attendance/$batch`: authorise, decode, plan, send, settle, encode. Nothing is posted before the whole envelope
 * was decoded; every record is answered. `prefix` is the path before `/V2`. Throws what the request as a whole is refused for.
 */
export async function handleBatch(
  context: ProxyContext,
  request: IncomingMessage,
  response: ServerResponse,
  prefix: string,
): Promise<void> {
  const startedMs = context.nowMs()
  const host = checkHost(request)
  const authorisation = await context.authorise(request)
  const { partner } = authorisation
  const { body, held } = await readRequest(request, context.limits.maxBodyBytes, context.byteBudget)
  try {
    const serviceHosts = new Set([hostName(host), ...context.serviceHosts])
    const batch = decodeBatch(body, request.headers['content-type'], { limits: context.limits, serviceHosts })
    const plan = planBatch(batch, partner, new Date(startedMs).toISOString())
    checkBudget(context, authorisation, plan, response)
    const sending = createSending(context, authorisation)
    const tally = batch.idsAgree
      ? await answerRecords(context, request, response, prefix, sending, partner, batch, plan)
      : await answerMismatch(context, response, sending, partner, plan)
    context.events.batchAnswered({
      ...tally,
      partner: partner.id,
      records: batch.parts.length,
      changesets: batch.changesets.length,
      outcomesShown: batch.idsAgree,
      unmappedFields: plan.unmappedFields,
      durationMs: context.nowMs() - startedMs,
      queuedMs: sending.queuedMs(),
    })
  } finally {
    context.byteBudget.release(held)
  }
}

/** Posts the records and streams one part for each (batch-wire A3 to A7). */
async function answerRecords(
  context: ProxyContext,
  request: IncomingMessage,
  response: ServerResponse,
  prefix: string,
  sending: Sending,
  partner: Partner,
  batch: Batch,
  plan: Plan,
): Promise<BatchTally> {
  const { newId } = context
  const tally = emptyTally()
  const encoder = createBatchEncoder(layoutFor(partner, request), newId, partner.msgtypeResponse)
  const reply = new ReplyStream(response, encoder, plan.records.length, () => sending.timing())
  const texts = {
    context: `${serviceRoot(request, prefix)}/V2/Attendance/$metadata#AttendanceRecords/$entity`,
    newId,
    dataEnvelope: partner.dataEnvelope,
  }
  plan.records.forEach((planned, index) => {
    if (planned.faults === undefined) return
    reply.settle(index, settleFault(planned, texts))
    tally.refused += 1
  })
  await sending.sendAll(plan.records, (index, outcome) => {
    const planned = plan.records[index]
    if (planned === undefined) return
    reply.settle(index, settleRecord(planned, outcome, texts))
    reply.begin()
    count(tally, outcome)
  })
  reply.end(batch.changesets.length)
  return tally
}

/** The ids of header and body differ: the records are posted all the same, and the client gets one 200 (batch-wire 3). */
async function answerMismatch(
  context: ProxyContext,
  response: ServerResponse,
  sending: Sending,
  partner: Partner,
  plan: Plan,
): Promise<BatchTally> {
  const tally = emptyTally()
  tally.refused = plan.records.filter(({ faults }) => faults !== undefined).length
  if (partner.mismatch === 'post') {
    await sending.sendAll(plan.records, (_index, outcome) => count(tally, outcome))
  } else {
    tally.notApplied = plan.records.length - tally.refused
  }
  const { contentType, body } = encodeMismatch(context.newId)
  response.writeHead(200, { 'Content-Type': contentType, 'Content-Length': Buffer.byteLength(body) })
  response.end(body)
  return tally
}

/** Error: `ADP_BUDGET_EXCEEDED` with `Retry-After`, for a partner that wants no batch begun that cannot be finished. */
function checkBudget(
  context: ProxyContext,
  authorisation: Authorisation,
  plan: Plan,
  response: ServerResponse,
): void {
  const records = plan.records.filter(({ record }) => record !== undefined).length
  const calls = context.v3.callsFor(records, authorisation.partner.batch)
  const seconds = overBudgetSeconds(authorisation, calls)
  if (seconds === undefined) return
  response.setHeader('Retry-After', String(seconds))
  throw new AdapterError(
    'ADP_BUDGET_EXCEEDED',
    'The records cannot be posted within the time for a batch at the rate that the service allows. Nothing was posted; send them later, or in smaller batches.',
  )
}

/**
 * `auto`: a client that names an OData version, or accepts multipart/mixed by name, is a generic one, and those need the nested
 * layout (batch-wire A6). The request of service.md 4.2 has none of these headers.
 */
function layoutFor(partner: Partner, request: IncomingMessage): 'flat' | 'nested' {
  if (partner.layout !== 'auto') return partner.layout
  const { headers } = request
  const generic =
    headers['odata-version'] !== undefined ||
    headers['odata-maxversion'] !== undefined ||
    /\bmultipart\/mixed\b/i.test(headers.accept ?? '') // all that the SAP Cloud SDK says
  return generic ? 'nested' : 'flat'
}

function emptyTally(): BatchTally {
  return { accepted: 0, refused: 0, notApplied: 0, unknown: 0 }
}

function count(tally: BatchTally, outcome: PostOutcome): void {
  tally[outcome.kind] += 1
}
