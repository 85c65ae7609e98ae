import { errorRules } from '../errors.ts'
import type { Slices } from '../http/slices.ts'
import type { StoredBatch, StoredRecord } from '../journal/index.ts'
import type { BatchTally } from '../observability/events.ts'
import { v2ErrorRules, type FailedOutcome, toFlatReply, toV2Failure } from '../translate/index.ts'
import {
  encodeErrorArray,
  encodeFlatReply,
  envelopRecord,
  type FlatReply,
  type PartReply,
  type V2Error,
} from '../v2/index.ts'
import type { PostOutcome } from '../v3/index.ts'
import type { PartPreferences, Plan, PlannedRecord } from './plan.ts'
import { createReplyIds, type StoredRequest, type WriteRequest } from './stored-request.ts'

/** A reply of V2, as the client received it or would have received it. */
export interface StoredReply {
  readonly status: number
  readonly reason: string
  /** The header fields as they were sent: name, value, name, value. */
  readonly fields: readonly string[]
  readonly body: Buffer
}

/** The reply to a write request. Its parts may be set in any order. */
export interface Reply {
  /** Sets the reply part of the record at `index`. A second part for the same record is ignored. */
  setPart(index: number, reply: PartReply): void
  /** Allows the status line to be sent. Before this call, the request may still be answered with another status. */
  begin(): void
  /** Returns true once the status line was sent. From then on, the request can only be answered part by part. */
  isStatusSent(): boolean
  /** Writes the rest of the reply. Every record must have a part by then. Resolves once all bytes were handed over for sending. */
  end(): Promise<void>
}

/**
 * Opens the reply once its form and ids are known. The reply to a resend has the ids of the first reply. `timing` returns the value of the
 * header field `Server-Timing`.
 */
export type OpenReply = (
  form: Pick<WriteRequest, 'layout' | 'msgtypeResponse' | 'recordsUrl'>,
  newId: () => string,
  timing: () => string | undefined,
) => Reply

export interface Answered {
  readonly tally: BatchTally
  readonly queuedMs: number
  readonly replayed: boolean
  readonly askedV3: boolean
  readonly batch: number
  /** The reply that V2 gave when V2 served this batch, which is sent unchanged. */
  readonly storedReply?: StoredReply | undefined
}

/** The facts on which a reply part depends. `newId` returns a new GUID, which becomes the SequenceID of a failed record. */
export type ReplyContext = Pick<WriteRequest, 'context' | 'dataEnvelope' | 'errorMessages'> & {
  readonly newId: () => string
}

/** Turns the outcome of a record into its part of the reply (batch-wire A4). */
export function toReplyPart(planned: PlannedRecord, outcome: PostOutcome, context: ReplyContext): PartReply {
  const { record, answering } = planned
  if (outcome.kind !== 'accepted') return toFailure(planned, outcome, context)
  if (record === undefined) return toFaultPart(planned, context)
  return toMarkPart(answering, toFlatReply(record, outcome.reply), context)
}

export function toMarkPart(answering: PartPreferences, mark: FlatReply, context: ReplyContext): PartReply {
  if (answering.prefersMinimal) return toPart(answering, 204, undefined)
  const json = encodeFlatReply(mark, context.context, answering.metadata)
  return toPart(answering, 201, context.dataEnvelope ? envelopRecord(json) : json)
}

/** Creates a part from copied members, so that the part does not keep the whole record in memory. */
function toPart(
  { contentId, contentIdInHttp, changeset }: PartPreferences,
  status: number,
  json: string | undefined,
): PartReply {
  return { contentId, contentIdInHttp, changeset, status, json }
}

export function toFaultPart(planned: PlannedRecord, context: ReplyContext): PartReply {
  const faults = planned.faults ?? []
  const [first] = faults
  const status = first === undefined ? 400 : errorRules[first.code].status
  return toReply(planned, status, faults, context)
}

/** Returns the part of a superseded record. `wasSent` is true if the record was sent to V2, which may have applied it. */
export function toSupersededPart(planned: PlannedRecord, context: ReplyContext, wasSent: boolean): PartReply {
  const code = wasSent ? 'ADP_SUPERSEDED_UNKNOWN' : 'ADP_SUPERSEDED'
  const message = wasSent
    ? 'A newer mark for this learner and event was accepted. It is unknown whether this mark was applied before. Do not resend it.'
    : 'A newer mark for this learner and event was accepted. This mark was not applied and will not be. Do not resend it.'
  return toReply(planned, errorRules[code].status, [{ code, message }], context)
}

function toFailure(planned: PlannedRecord, outcome: FailedOutcome, context: ReplyContext): PartReply {
  const { status, errors } = toV2Failure(outcome, v2ErrorRules)
  const texts = context.errorMessages
  const worded = texts === undefined ? errors : errors.map((error) => withText(error, texts))
  return toReply(planned, status, worded, context)
}

/** Replaces the message of an error with the configured text, if any. `Object.hasOwn` guards against a code of V3 such as `constructor`. */
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

/** Encodes a reply part for the journal: the status, then a space and the JSON if the part has JSON. */
export function encodeAnswer({ status, json }: Pick<PartReply, 'status' | 'json'>): string {
  return json === undefined ? String(status) : `${status} ${json}`
}

function decodeAnswer(planned: PlannedRecord, stored: StoredRecord): PartReply | undefined {
  const { answer } = stored
  if (answer === undefined) return undefined
  const end = answer.indexOf(' ')
  if (end < 0) return toPart(planned.answering, Number(answer), undefined)
  return toPart(planned.answering, Number(answer.slice(0, end)), answer.slice(end + 1))
}

/** Returns true if an earlier attempt may have applied the record. */
export function mayBeApplied(record: Pick<StoredRecord, 'state'> | undefined): boolean {
  return record?.state === 'unknown' || record?.state === 'open'
}

/** Returns true if recovery may still post the record or read it back, because the record is open or has a time for a retry. */
export function isPending({ state, retry, superseded }: StoredRecord): boolean {
  return state === 'open' || (typeof retry === 'number' && !superseded)
}

/**
 * Returns true for a record that may not have been applied and that no newer record has superseded. If the client got a single 200 for the
 * whole batch, returns true only for records that were denied together with the batch, because the client was told only of that denial.
 */
export function isRetryable({ position, state, retry, superseded }: StoredRecord, plan: Plan): boolean {
  // A record that another version accepted and this version cannot read is left to recovery, which makes it a dead letter.
  if (superseded || plan.records[position]?.record === undefined) return false
  return retry === 'resend' || (plan.outcomesShown && retry !== undefined && state !== 'confirmed')
}

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
    // Derives the ids from the position, so that a part has the same ids in every reply, whatever the outcomes of the other records are.
    const contextOf = (): ReplyContext => ({ ...request, newId: createReplyIds(replyId, position) })
    reply.setPart(position, toStoredPart(record, planned, contextOf))
    if (slices.spend(ANSWER_WORK)) await slices.next()
  }
}

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
/** The outcome that a client gets for a record that was not applied, but that recovery may post at any time. */
export const mayBePosted = { kind: 'unknown', reason: 'stillTried' } as const
const neverSent = { kind: 'notApplied', reason: 'stopped', retryAfterMs: undefined } as const

const ANSWER_WORK = 1_024

function toStoredPart(
  record: StoredRecord,
  planned: PlannedRecord,
  contextOf: () => ReplyContext,
): PartReply {
  const { state, superseded } = record
  const stored = decodeAnswer(planned, record)
  // A superseded record needs its own answer. After "not applied" or "not known yet", the client would resend the record for ever.
  if (superseded && (state === 'refused' || state === 'parked'))
    return toSupersededPart(planned, contextOf(), false)
  if (superseded && state === 'unknown' && stored?.status !== SUPERSEDED_STATUS)
    return toSupersededPart(planned, contextOf(), true)
  // The stored part says that the record was not applied. That is not final, because recovery may post the record at any time.
  if (state === 'parked' && isPending(record)) return toReplyPart(planned, mayBePosted, contextOf())
  // A record without a stored part was denied together with its whole batch, so it was never sent.
  return stored ?? toReplyPart(planned, neverSent, contextOf())
}
