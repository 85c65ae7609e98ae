import { errorRules } from '../errors.ts'
import type { Slices } from '../http/slices.ts'
import type { StoredBatch, StoredRecord } from '../journal/index.ts'
import type { BatchTally } from '../observability/events.ts'
import { v2ErrorRules, type FailedOutcome, toFlatReply, toV2Failure } from '../translate/index.ts'
import {
  encodeErrorArray,
  encodeFlatReply,
  envelopRecord,
  type PartReply,
  type V2Error,
} from '../v2/index.ts'
import type { PostOutcome } from '../v3/index.ts'
import type { PartPreferences, Plan, PlannedRecord } from './plan.ts'
import { createReplyIds, type StoredRequest, type WriteRequest } from './stored-request.ts'

/** A reply of V2 as its client got it, or would have. */
export interface KeptReply {
  readonly status: number
  readonly reason: string
  /** Name, value, name, value, as they were sent. */
  readonly fields: readonly string[]
  readonly body: Buffer
}

/** Takes the parts of a reply, in any order. */
export interface Reply {
  /** Sets the answer of the record at `index`; a second one for the same record changes nothing. */
  settle(index: number, reply: PartReply): void
  /** Allows the status line to leave; until then the request may still be answered otherwise. */
  begin(): void
  /** True once the status line has left: the request can only be answered part by part then. */
  hasLeft(): boolean
  /** Writes the rest and ends the reply; every record has been settled by then. Resolves once all was handed over. */
  end(): Promise<void>
}

/**
 * Opens the reply once its form and ids are known: those of the first of several equal requests. `timing` gives the value of
 * `Server-Timing`.
 */
export type OpenReply = (
  form: Pick<WriteRequest, 'layout' | 'msgtypeResponse' | 'recordsUrl'>,
  newId: () => string,
  timing: () => string | undefined,
) => Reply

/** The counts of an answered request. */
export interface Answered {
  readonly tally: BatchTally
  readonly queuedMs: number
  /** The journal knew the batch already. */
  readonly replayed: boolean
  /** Records of it were posted or read back for this request. */
  readonly askedV3: boolean
  /** Its number in the journal. */
  readonly batch: number
  /** The reply that V2 gave when it served this batch: it is to be sent as it is. */
  readonly kept?: KeptReply | undefined
}

/** The values that reply parts need besides the outcome; `newId`: a new guid, the SequenceID of a failed record. */
export type ReplyContext = Pick<WriteRequest, 'context' | 'dataEnvelope' | 'errorMessages'> & {
  readonly newId: () => string
}

/** Turns the outcome of a record into its part of the reply (batch-wire A4). */
export function toReplyPart(planned: PlannedRecord, outcome: PostOutcome, context: ReplyContext): PartReply {
  const { record, answering } = planned
  if (outcome.kind !== 'accepted') return toFailure(planned, outcome, context)
  if (record === undefined) return toFaultPart(planned, context)
  if (answering.prefersMinimal) return toPart(answering, 204, undefined)
  const json = encodeFlatReply(toFlatReply(record, outcome.reply), context.context, answering.metadata)
  return toPart(answering, 201, context.dataEnvelope ? envelopRecord(json) : json)
}

/** Member by member: a part holds no more of a record than the reply writes. */
function toPart(
  { contentId, contentIdInHttp, changeset }: PartPreferences,
  status: number,
  json: string | undefined,
): PartReply {
  return { contentId, contentIdInHttp, changeset, status, json }
}

/** The part of a record that was refused before it was posted. */
export function toFaultPart(planned: PlannedRecord, context: ReplyContext): PartReply {
  const faults = planned.faults ?? []
  const [first] = faults
  const status = first === undefined ? 400 : errorRules[first.code].status
  return toReply(planned, status, faults, context)
}

/**
 * The part of a record that a newer one of its learner and event has superseded: it is not sent again. `mayHaveLeft`: V2 was sent it and
 * may have applied it; else it was not applied.
 */
export function toSupersededPart(
  planned: PlannedRecord,
  context: ReplyContext,
  mayHaveLeft: boolean,
): PartReply {
  const code = mayHaveLeft ? 'ADP_SUPERSEDED_UNKNOWN' : 'ADP_SUPERSEDED'
  const message = mayHaveLeft
    ? 'A newer mark of this learner and event was taken since. Whether this one was applied before is not known; it is not sent again.'
    : 'A newer mark of this learner and event was taken. This one was not applied and will not be.'
  return toReply(planned, errorRules[code].status, [{ code, message }], context)
}

function toFailure(planned: PlannedRecord, outcome: FailedOutcome, context: ReplyContext): PartReply {
  const { status, errors } = toV2Failure(outcome, v2ErrorRules)
  const texts = context.errorMessages
  const worded = texts === undefined ? errors : errors.map((error) => withText(error, texts))
  return toReply(planned, status, worded, context)
}

/** A code is what a service chose to send: only own members are texts. */
function withText({ code, message }: V2Error, texts: Readonly<Record<string, string>>): V2Error {
  return { code, message: Object.hasOwn(texts, code) ? (texts[code] ?? message) : message }
}

function toReply(
  planned: PlannedRecord,
  status: number,
  errors: readonly V2Error[],
  context: ReplyContext,
): PartReply {
  return toPart(planned.answering, status, encodeErrorArray(errors, context.newId()))
}

/** A part of the reply as the journal keeps it: the status, a blank, and the JSON if there is any. */
export function encodeAnswer({ status, json }: Pick<PartReply, 'status' | 'json'>): string {
  return json === undefined ? String(status) : `${status} ${json}`
}

/** The part of the reply of a record that was answered before; undefined: it was not. */
function decodeAnswer(planned: PlannedRecord, stored: StoredRecord): PartReply | undefined {
  const { answer } = stored
  if (answer === undefined) return undefined
  const end = answer.indexOf(' ')
  if (end < 0) return toPart(planned.answering, Number(answer), undefined)
  return toPart(planned.answering, Number(answer.slice(0, end)), answer.slice(end + 1))
}

/** True for a record that may have been applied when it was sent before. */
export function mayHaveLeft(record: Pick<StoredRecord, 'state'> | undefined): boolean {
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
    const contextOf = (): ReplyContext => ({ ...request, newId: createReplyIds(replyId, position) })
    reply.settle(position, toStoredPart(record, planned, contextOf))
    if (slices.spend(ANSWER_WORK)) await slices.next()
  }
}

/** The counts of the records of a stored batch. */
export function tallyOf({ records }: StoredBatch): BatchTally {
  const tally: BatchTally = { accepted: 0, refused: 0, notApplied: 0, unknown: 0 }
  for (const { state } of records) {
    if (state === 'confirmed') tally.accepted += 1
    else if (state === 'refused') tally.refused += 1
    else if (state === 'parked' || state === 'notApplied') tally.notApplied += 1
    else tally.unknown += 1
  }
  return tally
}

const SUPERSEDED_STATUS = errorRules.ADP_SUPERSEDED_UNKNOWN.status
/** The outcome of a record that is not applied, and that the background may post at any time. */
export const mayBePosted = { kind: 'unknown', reason: 'stillTried' } as const
const neverSent = { kind: 'notApplied', reason: 'stopped', retryAfterMs: undefined } as const

/** The cost of a stored answer, in bytes of a batch. */
const ANSWER_WORK = 1_024

function toStoredPart(
  record: StoredRecord,
  planned: PlannedRecord,
  contextOf: () => ReplyContext,
): PartReply {
  const { state, superseded } = record
  const stored = decodeAnswer(planned, record)
  // Answered "not applied" or "not known yet", its client would send it again for ever.
  if (superseded && (state === 'refused' || state === 'parked'))
    return toSupersededPart(planned, contextOf(), false)
  if (superseded && state === 'unknown' && stored?.status !== SUPERSEDED_STATUS)
    return toSupersededPart(planned, contextOf(), true)
  // Its stored answer says that it was not applied; recovery may post it at any time.
  if (state === 'parked' && isHeld(record)) return toReplyPart(planned, mayBePosted, contextOf())
  // Without an answer of its own a record was denied together with its whole batch.
  return stored ?? toReplyPart(planned, neverSent, contextOf())
}
