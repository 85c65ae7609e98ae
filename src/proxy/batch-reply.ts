import type { ServerResponse } from 'node:http'

import type { Answered, KeptReply, OpenReply, PlannedRequest } from '../writes/index.ts'
import { createBatchEncoder } from '../v2/index.ts'
import type { ProxyContext } from './context.ts'
import { createMismatchReply, ReplyStream } from './reply-stream.ts'

/** Opens the reply to a batch that was read and planned. */
export function openBatchReply(
  response: ServerResponse,
  { records, changesets, outcomesShown }: PlannedRequest['plan'],
): OpenReply {
  return ({ layout, msgtypeResponse, recordsUrl }, newId, timing) =>
    outcomesShown
      ? new ReplyStream(
          response,
          createBatchEncoder(layout, newId, msgtypeResponse, recordsUrl),
          { count: records.length, changesets },
          timing,
        )
      : createMismatchReply(response, newId)
}

/** Notes a batch that was answered; sends the reply that V2 gave, where that is the answer. */
export function endBatchReply(
  context: ProxyContext,
  response: ServerResponse,
  partner: string,
  { plan, receivedMs }: PlannedRequest,
  { tally, queuedMs, replayed, batch, kept }: Answered,
): void {
  onceWritten(response, () => context.journal.answered(batch))
  if (kept !== undefined) sendKept(response, kept)
  context.events.batchAnswered({
    ...tally,
    partner,
    records: plan.records.length,
    changesets: plan.changesets,
    outcomesShown: plan.outcomesShown,
    unmappedFields: plan.unmappedFields,
    convertedFields: plan.convertedFields,
    replayed,
    durationMs: context.nowMs() - receivedMs,
    queuedMs,
  })
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

function sendKept(response: ServerResponse, { status, reason, fields, body }: KeptReply): void {
  response.sendDate = false
  response.writeHead(status, reason, [...fields])
  response.end(body)
}
