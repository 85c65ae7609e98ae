import type { ServerResponse } from 'node:http'

import { readBody } from '../http/body.ts'
import { pathBefore } from '../http/request-target.ts'
import { createBatchEncoder } from '../v2/index.ts'
import { answerWrites } from '../writes/answer.ts'
import { type Plan, type PlannedRequest, planWrites } from '../writes/plan.ts'
import type { Answered, StoredReply, OpenReply } from '../writes/reply.ts'
import { toWriteRequest, type WriteRequest } from '../writes/stored-request.ts'
import { releaseAfterReply } from './byte-budget.ts'
import type { Handle, ProxyContext } from './context.ts'
import { type Exchange, expectCurrent } from './exchange.ts'
import { createBatchReply, createMismatchReply, createRecordReply } from './reply-stream.ts'
import { addressOf, serviceRoot } from './requested-address.ts'

/**
 * `POST …/V2/Attendance/$batch`, and `POST …/V2/Attendance/AttendanceRecords` with one flat record: read, decode and plan; then the
 * engine journals, posts, settles and answers. Nothing is posted before the whole envelope was decoded and is durable; every record is
 * answered. A single record gets 201 with the flat record, or the status and error array that its part would have had.
 */
export const handleWrite: Handle = async (context, exchange, authorisation) => {
  const { request, response, entry, kind, receivedMs, observer } = exchange
  const { partner } = authorisation
  const slices = context.slicing.open()
  const limits = context.limits()
  const held = context.byteBudget.open(context.accepted.queueKey(authorisation))
  try {
    const body = await readBody(request, {
      maxBytes: kind === 'record' ? limits.maxPartBytes : limits.maxBodyBytes,
      contentEncoding: request.headers['content-encoding'],
      contentLength: request.headers['content-length'],
      onBytes: (count) => held.take(count),
      slices,
    })
    const form = writeRequestOf(exchange)
    const plan = await planWrites(form, body, partner, receivedMs, limits, slices)
    observer.decoded(plan)
    held.take(replyBytes(form, plan))
    const planned = { request: form, body, receivedMs, plan, slices }
    const reply = openReply(exchange, plan)
    const mayBegin = (): void => expectCurrent(entry)
    const answered = await answerWrites(context, authorisation, planned, reply, mayBegin)
    await endReply(context, exchange, planned, answered)
  } finally {
    releaseAfterReply(held, response)
  }
}

/** JSON of a flat record without its context. */
const RECORD_BYTES = 512

/**
 * Memory for the parts of a reply, which wait for their client to read them: taken before anything is posted, since the outcome of a
 * record is not refused for lack of memory. Each record has the address of the request in its context.
 */
export function replyBytes({ context }: WriteRequest, { records, outcomesShown }: Plan): number {
  return outcomesShown ? records.length * (RECORD_BYTES + context.length) : 0
}

/** What decides the posts and the answer of a write, besides its body. */
export function writeRequestOf({ request, kind: asked, prefix, client }: Exchange): WriteRequest {
  const kind = asked === 'record' ? 'record' : 'batch'
  // As the client spells the path of its write: that path for a single record, its sibling for a batch.
  const address = addressOf(request).replace(/(?:\(\)|%28%29)?\/?$/, '')
  const records = kind === 'record' ? address : `${pathBefore(address, 1)}/AttendanceRecords`
  return toWriteRequest(kind, client.partner, request.headers, {
    root: serviceRoot(request, prefix),
    records,
  })
}

/** Opens the reply to a write that was read and planned. */
export function openReply({ response, observer }: Exchange, plan: Plan): OpenReply {
  return ({ layout, msgtypeResponse, recordsUrl }, newId, timing) => {
    if (plan.ids === undefined) return createRecordReply(response, recordsUrl, timing, observer)
    if (!plan.outcomesShown) return createMismatchReply(response, newId, observer)
    const encoder = createBatchEncoder(layout, newId, msgtypeResponse, recordsUrl)
    return createBatchReply(response, encoder, plan, timing, observer)
  }
}

/** Counts the bytes of a reply that is given whatever the budget has left: its batch was applied. */
export function countReply({ byteBudget, accepted }: ProxyContext, exchange: Exchange, bytes: number): void {
  const held = byteBudget.open(accepted.queueKey(exchange.client))
  held.add(bytes)
  releaseAfterReply(held, exchange.response)
}

/** Sends the reply that V2 gave, where that is the answer; notes the end of a write that was answered. */
export async function endReply(
  context: ProxyContext,
  exchange: Exchange,
  planned: PlannedRequest,
  answered: Answered,
): Promise<void> {
  const { response, observer } = exchange
  const { batch, storedReply } = answered
  // A single record has no ids that another one could use again.
  if (planned.plan.ids !== undefined) onceWritten(response, () => context.journal.answered(batch))
  if (storedReply !== undefined) {
    countReply(context, exchange, storedReply.body.length)
    sendKept(response, storedReply)
  }
  await observer.replied({ kind: 'answered', planned, answered })
}

/** Calls back when the reply was written completely; never if the client disconnected before, or closed its side: it may have gone. */
export function onceWritten(response: ServerResponse, onWritten: () => void): void {
  const { socket } = response.req
  const check = (): void => {
    if (!socket.readableEnded) onWritten()
  }
  if (response.writableFinished) check()
  else response.once('finish', check)
}

function sendKept(response: ServerResponse, { status, reason, fields, body }: StoredReply): void {
  response.sendDate = false
  response.writeHead(status, reason, [...fields])
  response.end(body)
}
