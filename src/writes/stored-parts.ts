import type { Slices } from '../http/slices.ts'
import type { StoredBatch, StoredRecord } from '../journal/index.ts'
import type { BatchTally } from '../observability/events.ts'
import type { PartReply } from '../v2/index.ts'
import type { Plan, PlannedRecord } from './plan.ts'
import { type ReplyContext, replyContextOf, toReplyPart, toSupersededPart } from './reply-part.ts'
import type { Reply } from './reply.ts'
import { decodeAnswer } from './stored-answer.ts'
import { createReplyIds, type StoredRequest } from './stored-request.ts'

/** True for a record that may have been applied when it was sent before. */
export function mayHaveLeft(record: StoredRecord | undefined): boolean {
  return record?.state === 'unknown' || record?.state === 'open'
}

/** True for a record that recovery may still post or find: it is open, or due at some time. */
export function isHeld({ state, retry, superseded }: StoredRecord): boolean {
  return state === 'open' || (typeof retry === 'number' && !superseded)
}

/**
 * True for a record that was not applied, or may not have been, while no newer one has taken its place. Of a batch whose client
 * was answered 200 for all, only those that were denied together with it: their client was answered so.
 */
export function isRetryable({ position, state, retry, superseded }: StoredRecord, plan: Plan): boolean {
  // A record that another version accepted and this one cannot read is left to recovery, which makes it a dead letter.
  if (superseded || plan.records[position]?.record === undefined) return false
  return retry === 'resend' || (plan.outcomesShown && retry !== undefined && state !== 'confirmed')
}

/** Hands the stored answers of records to a reply. */
export async function settleStored(
  { request, replyId }: StoredRequest,
  records: readonly StoredRecord[],
  plan: Plan,
  reply: Reply,
  slices: Slices,
): Promise<void> {
  for (const record of records) {
    const { position } = record
    const planned = plan.records[position]
    if (planned === undefined) continue
    // The same answer has the same ids, also when other records of the batch have other answers by then.
    const contextOf = (): ReplyContext => replyContextOf(request, createReplyIds(replyId, position))
    reply.settle(position, toStoredPart(record, planned, contextOf))
    if (slices.spend(ANSWER_WORK)) await slices.next()
  }
}

/** The counts of the records of a stored batch. */
export function tallyOf({ records }: StoredBatch): BatchTally {
  const tally: BatchTally = { accepted: 0, refused: 0, notApplied: 0, unknown: 0 }
  for (const { state, retry } of records) {
    if (state === 'confirmed') tally.accepted += 1
    else if (state === 'parked' || retry === 'resend') tally.notApplied += 1
    else if (state === 'refused') tally.refused += 1
    else tally.unknown += 1
  }
  return tally
}

const mayBePosted = { kind: 'unknown', reason: 'stillTried' } as const
const neverSent = { kind: 'notApplied', reason: 'stopped', retryAfterMs: undefined } as const

/** The cost of a stored answer, in bytes of a batch. */
const ANSWER_WORK = 1_024

function toStoredPart(
  record: StoredRecord,
  planned: PlannedRecord,
  contextOf: () => ReplyContext,
): PartReply {
  // Answered "not applied", its client would send it again for ever.
  if (record.superseded && (record.state === 'refused' || record.state === 'parked'))
    return toSupersededPart(planned, contextOf())
  // Its stored answer says that it was not applied; recovery may post it at any time.
  if (record.state === 'parked' && isHeld(record)) return toReplyPart(planned, mayBePosted, contextOf())
  // Without an answer of its own a record was denied together with its whole batch.
  return decodeAnswer(planned, record) ?? toReplyPart(planned, neverSent, contextOf())
}
