import * as z from 'zod'

import { MAX_RECORD_NODES, parseJson, readRetryAfter } from '../upstream/index.ts'
import { isV3Reply, type V3Reply } from './record.ts'

/**
 * The reason why a write was not applied: it was never sent, or the upstream's reply shows that it was not processed, such as a 429 or 503.
 */
export type NotAppliedReason =
  | 'notConnected'
  | 'budget'
  | 'queueFull'
  | 'batchRefused'
  | 'throttled'
  | 'unavailable'
  | 'redirected'
  | 'stopped'
  | 'ownCredentials'
  | 'leaseLost'

/**
 * The reason why the outcome of a write is unknown: it was sent, and no readable reply arrived.
 *
 * `otherRecord`: the reply is about another record. `overwritten`: the read-back found only a newer mark of another client. `superseded`:
 * the read-back did not find the mark, and the journal has a newer record of the key. `notReadBack`: an earlier attempt sent the record,
 * and the present attempt ended before it could read the record back. `stillTried`: the record is not applied yet, and recovery may still
 * post it. `stillExecuting`: V3 may still be executing the record's `$batch`.
 */
export type UnknownReason =
  | 'connectionLost'
  | 'timeout'
  | 'unreadableReply'
  | 'serverError'
  | 'otherRecord'
  | 'overwritten'
  | 'superseded'
  | 'notReadBack'
  | 'stillTried'
  | 'stillExecuting'

/** The records of one `$batch` for which no answer arrived. V3 may still be executing them, one after another. */
export interface SentTogether {
  readonly records: number
}

/**
 * The outcome of one POST. `accepted` means that V3 stored the record, and `refused` that V3 rejected it (4xx, 501). `notApplied` means
 * that the request never left, or that V3 reported that it did not process the request (429, 503). `unknown` means that the record may have
 * been applied. An unknown outcome must never be reported as a failure (product contract, "no outcome guessed").
 */
export type PostOutcome =
  | { readonly kind: 'accepted'; readonly reply: V3Reply }
  | { readonly kind: 'refused'; readonly error: UpstreamError }
  | Unanswered

/** The outcome of a POST for which V3 returned no verdict on the record. */
export type Unanswered =
  | {
      readonly kind: 'notApplied'
      readonly reason: NotAppliedReason
      readonly retryAfterMs: number | undefined
    }
  | {
      readonly kind: 'unknown'
      readonly reason: UnknownReason
      /** The unanswered records of the `$batch`, in one object that they share, or `undefined` if the record was posted alone. */
      readonly together?: SentTogether | undefined
      /** For the reason `stillExecuting`: the monotonic time in ms since which no record of the `$batch` has appeared. */
      readonly sinceMs?: number | undefined
    }

export interface UpstreamErrorEntry {
  readonly code: string | undefined
  readonly message: string
  readonly target: string | undefined
}

/** Maximum length of an error body in characters. A longer body is not read, because its JSON could take long to parse. */
const MAX_ERROR_LENGTH = 65_536

/** An error reply of the upstream in one common form, whatever the form of its body. */
export interface UpstreamError {
  readonly status: number
  /** The form of the body. `unreadable` stands for HTML, an empty body, broken JSON, and a body that is too long for an error. */
  readonly form: 'odata' | 'gateway' | 'array' | 'unreadable'
  /** The first 16 entries, in the upstream's order. Empty if the body is unreadable. */
  readonly entries: readonly UpstreamErrorEntry[]
  /** The error that contains `entries` as its `details`. It may be an error of its own, or only the heading of the details. */
  readonly outer?: UpstreamErrorEntry
  /** The number of entries beyond the first 16, which were not read, or `undefined` if all were read. */
  readonly omitted?: number
}

/** Maximum number of entries read from an error. A record has about a dozen members that may be wrong. */
const MAX_ENTRIES = 16

const text = z.string().catch('')
const name = z.string().nullish().catch(undefined)
const entry = z.object({ code: name, message: text, target: name })
const odata = z.object({ error: entry.extend({ details: firstOf(entry).nullish().catch(undefined) }) })
const gateway = z.object({ statusCode: z.number(), message: z.string() })
const array = firstOf(z.object({ ErrorCode: name, Message: text, ResourceIdentifier: name }))

function firstOf<Entry extends z.ZodType>(own: Entry) {
  const counted = (list: unknown[]) => ({
    first: list.slice(0, MAX_ENTRIES),
    omitted: Math.max(0, list.length - MAX_ENTRIES),
  })
  return z
    .array(z.unknown())
    .transform(counted)
    .pipe(z.object({ first: z.array(own), omitted: z.number() }))
}

/** Reads an error in the form of OData, `{"error":{…}}`, the gateway (service-facts 12) or the V2 array (service.md 7). Never throws. */
export function readUpstreamError(status: number, body: string): UpstreamError {
  const json = body.length > MAX_ERROR_LENGTH ? undefined : parseJson(body)
  const asOData = odata.safeParse(json)
  if (asOData.success) {
    const { details, ...outer } = asOData.data.error
    const { first, omitted } = details ?? { first: [], omitted: 0 }
    if (first.length === 0) return { status, form: 'odata', entries: [toEntry(outer)] }
    return { status, form: 'odata', ...toEntries(first.map(toEntry), omitted), outer: toEntry(outer) }
  }
  const asGateway = gateway.safeParse(json)
  if (asGateway.success) {
    return {
      status,
      form: 'gateway',
      entries: [{ code: undefined, message: asGateway.data.message, target: undefined }],
    }
  }
  const asArray = array.safeParse(json)
  if (asArray.success && asArray.data.first.length > 0) {
    const entries = asArray.data.first.map((own) => ({
      code: own.ErrorCode ?? undefined,
      message: own.Message,
      target: own.ResourceIdentifier ?? undefined,
    }))
    return { status, form: 'array', ...toEntries(entries, asArray.data.omitted) }
  }
  return { status, form: 'unreadable', entries: [] }
}

function toEntries(
  entries: readonly UpstreamErrorEntry[],
  omitted: number,
): Pick<UpstreamError, 'entries' | 'omitted'> {
  return omitted === 0 ? { entries } : { entries, omitted }
}

function toEntry(own: z.infer<typeof entry>): UpstreamErrorEntry {
  return { code: own.code ?? undefined, message: own.message, target: own.target ?? undefined }
}

/** Reads a reply of status 429, 503 or 408, after which the request may be repeated. Returns `undefined` for any other status. */
export function readUnavailable(
  status: number,
  body: string,
  retryAfter: string | undefined,
  nowMs: number,
): { readonly reason: 'throttled' | 'unavailable'; readonly retryAfterMs: number | undefined } | undefined {
  if (status !== 429 && status !== 503 && status !== 408) return undefined
  const reason = status === 429 ? 'throttled' : 'unavailable'
  return { reason, retryAfterMs: readRetryAfter(retryAfter, body, nowMs) }
}

/** Returns true for 4xx and 501. After a 501 the request was not executed, since the service lacks the method (RFC 9110 15.6.2). */
export function isRefusal(status: number): boolean {
  return (status >= 400 && status < 500) || status === 501
}

/**
 * Reads the answer to a POST. A 2xx counts as accepted only with a readable record, because otherwise it is not known what the service did.
 * After a 500, 502 or 504 the outcome is unknown, because the write may have been applied. `retryAfter` is the text of the header: seconds,
 * or an HTTP date (RFC 9110 10.2.3) that is compared with `nowMs`.
 */
export function parsePostReply(
  status: number,
  body: string,
  retryAfter: string | undefined,
  nowMs: number,
): PostOutcome {
  if (status >= 200 && status < 300) {
    const reply = parseJson(body, MAX_RECORD_NODES)
    return isV3Reply(reply) ? { kind: 'accepted', reply } : { kind: 'unknown', reason: 'unreadableReply' }
  }
  const unavailable = readUnavailable(status, body, retryAfter, nowMs)
  if (unavailable !== undefined) return { kind: 'notApplied', ...unavailable }
  if (isRefusal(status)) return { kind: 'refused', error: readUpstreamError(status, body) }
  // A 303 means that the request was completed, and that its answer is at another address (RFC 9110 15.4.4).
  if (status === 303) return { kind: 'unknown', reason: 'unreadableReply' }
  // A redirect is never followed, because its target was not configured.
  if (status >= 300 && status < 400)
    return { kind: 'notApplied', reason: 'redirected', retryAfterMs: undefined }
  return { kind: 'unknown', reason: 'serverError' }
}
