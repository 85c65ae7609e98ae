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
 * Handles `POST …/V2/Attendance/$batch`, and `POST …/V2/Attendance/AttendanceRecords` with one flat record. Nothing is posted before the
 * whole envelope is decoded and stored, and every record gets an answer. A single record gets 201 with the flat record, or the status and
 * error array that its part of a batch would have.
 */
export const handleWrite: Handle = async (context, exchange, authorisation) => {
  const { request, response, entry, kind, receivedMs, result } = exchange
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
    result.plan = plan
    held.take(replyBytes(form, plan))
    const planned = { request: form, body, receivedMs, plan, slices }
    const reply = openReply(context, exchange, plan)
    const mayBegin = (): void => expectCurrent(entry)
    const answered = await answerWrites(context, authorisation, planned, reply, mayBegin)
    endReply(context, exchange, planned, answered)
  } finally {
    releaseAfterReply(held, response)
  }
}

/** The approximate size of a part with a flat record in JSON, without the context of the record, in bytes. */
const RECORD_BYTES = 1_024
/** The approximate size of one error in a part, without its message, in bytes. */
const ERROR_BYTES = 128

/**
 * Returns the memory in bytes for the parts of a reply that wait until their client reads them. This memory is reserved before anything is
 * posted, because an outcome must never be refused for lack of memory. Each part repeats the address of the request in its context, and a
 * record that the adapter refuses has an error for each fault.
 */
export function replyBytes({ context }: WriteRequest, { records, outcomesShown }: Plan): number {
  if (!outcomesShown) return 0
  let bytes = records.length * (RECORD_BYTES + context.length)
  for (const { faults = [] } of records)
    for (const { message } of faults) bytes += ERROR_BYTES + message.length
  return bytes
}

export function writeRequestOf({ request, kind: asked, prefix, client }: Exchange): WriteRequest {
  const kind = asked === 'record' ? 'record' : 'batch'
  // The address of the records is the requested address for a single record, and the sibling of `$batch` for a batch. It keeps the client's
  // spelling.
  const address = addressOf(request).replace(/(?:\(\)|%28%29)?\/?$/, '')
  const records = kind === 'record' ? address : `${pathBefore(address, 1)}/AttendanceRecords`
  return toWriteRequest(kind, client.partner, request.headers, {
    root: serviceRoot(request, prefix),
    records,
  })
}

export function openReply(
  { nowMs }: ProxyContext,
  { response, copyBytes, result }: Exchange,
  plan: Plan,
): OpenReply {
  const { parts } = result
  const open: OpenReply = ({ layout, msgtypeResponse, recordsUrl }, newId, timing) => {
    if (plan.ids === undefined) return createRecordReply(response, recordsUrl, timing)
    if (!plan.outcomesShown) return createMismatchReply(response, newId)
    const encoder = createBatchEncoder(layout, newId, msgtypeResponse, recordsUrl)
    return createBatchReply(response, encoder, plan, timing)
  }
  return (...form) => {
    const reply = open(...form)
    const setPart: typeof reply.setPart = (index, part) => {
      if (!parts.has(index)) {
        parts.set(index, copyBytes > 0 ? part : { ...part, json: undefined })
        result.settledMs = nowMs()
      }
      reply.setPart(index, part)
    }
    return { ...reply, setPart }
  }
}

/** Counts the bytes of a reply, even above the budget, because the reply to a batch that may have been applied must not be refused. */
export function countReply({ byteBudget, accepted }: ProxyContext, exchange: Exchange, bytes: number): void {
  const held = byteBudget.open(accepted.queueKey(exchange.client))
  held.add(bytes)
  releaseAfterReply(held, exchange.response)
}

/** Sends V2's stored reply if there is one, and tells the journal when the whole reply was written. */
export function endReply(
  context: ProxyContext,
  exchange: Exchange,
  planned: PlannedRequest,
  answered: Answered,
): void {
  const { response, result } = exchange
  const { batch, storedReply } = answered
  // The journal must know that a batch was answered, because its client may reuse the ids for another batch. A single record has no ids.
  if (planned.plan.ids !== undefined) onceWritten(response, () => context.journal.answered(batch))
  if (storedReply !== undefined) {
    countReply(context, exchange, storedReply.body.length)
    sendStored(response, storedReply)
  }
  result.outcome = { kind: 'answered', answered }
}

/** Calls `onWritten` when the whole reply was written, and never if the client disconnected earlier. */
export function onceWritten(response: ServerResponse, onWritten: () => void): void {
  const { socket } = response.req
  const check = (): void => {
    if (!socket.readableEnded) onWritten()
  }
  if (response.writableFinished) check()
  else response.once('finish', check)
}

function sendStored(response: ServerResponse, { status, reason, fields, body }: StoredReply): void {
  response.sendDate = false
  response.writeHead(status, reason, [...fields])
  response.end(body)
}
