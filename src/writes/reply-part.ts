import { errorRules } from '../errors.ts'
import { defaultErrorMapping, type FailedOutcome, toFlatReply, toV2Failure } from '../translate/index.ts'
import {
  encodeErrorArray,
  encodeFlatReply,
  envelopRecord,
  type PartReply,
  type V2Error,
} from '../v2/index.ts'
import type { PostOutcome } from '../v3/index.ts'
import type { PartPreferences, PlannedRecord } from './plan.ts'
import type { WriteRequest } from './stored-request.ts'

/** The values that reply parts need besides the outcome. */
export interface ReplyContext {
  /** Absolute context URL of one record. */
  readonly context: string
  /** A new guid: the SequenceID of a failed record. */
  readonly newId: () => string
  /** Quirk: records are in the `d` of OData V2. */
  readonly dataEnvelope: boolean
  /** Texts of V2's errors by their codes; undefined: the adapter's own. */
  readonly errorMessages?: Readonly<Record<string, string>> | undefined
}

/** The reply context of a request. */
export function replyContextOf(
  { context, dataEnvelope, errorMessages }: WriteRequest,
  newId: () => string,
): ReplyContext {
  return { context, dataEnvelope, errorMessages, newId }
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
export function toPart(
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

/** The part of a record that a newer one of its learner and event has superseded: it was not applied and never will be. */
export function toSupersededPart(planned: PlannedRecord, context: ReplyContext): PartReply {
  const code = 'ADP_SUPERSEDED'
  const message =
    'A newer mark of this learner and event was taken. This one was not applied and will not be.'
  return toReply(planned, errorRules[code].status, [{ code, message }], context)
}

/** As `toSupersededPart`, for a record that V2 was sent and may have applied. */
export function toSupersededUnknownPart(planned: PlannedRecord, context: ReplyContext): PartReply {
  const code = 'ADP_SUPERSEDED_UNKNOWN'
  const message =
    'A newer mark of this learner and event was taken since. Whether this one was applied before is not known; it is not sent again.'
  return toReply(planned, errorRules[code].status, [{ code, message }], context)
}

function toFailure(planned: PlannedRecord, outcome: FailedOutcome, context: ReplyContext): PartReply {
  const { status, errors } = toV2Failure(outcome, defaultErrorMapping)
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
