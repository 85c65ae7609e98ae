import * as z from 'zod'

import { MAX_RECORD_NODES, parseJson, readRetryAfter } from '../upstream/index.ts'
import { isV3Reply, type V3Reply } from './record.ts'

/** Why a write was not made: it never left, or the upstream said that it did not take it up (429, 503, a redirect). */
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
 * Why the outcome of a write is not known: it left, and no readable reply arrived. `overwritten`: the read-back did not find
 * it, but a newer mark of another client. `superseded`: it found another mark, and the journal has a newer record. `notReadBack`: it was sent before, and its
 * run ended before it was read back. `stillTried`: it has not been applied yet, and the background may post it. `stillExecuting`: V3 may
 * still be executing the `$batch` in which it was sent.
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

/** The records of one `$batch` that have no answer. The service may still be executing them, one after another. */
export interface SentTogether {
  readonly records: number
}

/**
 * The outcome of one POST. `accepted`: the service has it. `refused`: the service rejected it (4xx, 501). `notApplied`: it never
 * left, or the service said that it did not take it up (429, 503). `unknown`: it may have been applied or not; it must
 * never be reported as a failure (product contract, "no outcome guessed").
 */
export type PostOutcome =
  | { readonly kind: 'accepted'; readonly reply: V3Reply }
  | { readonly kind: 'refused'; readonly error: UpstreamError }
  | Unanswered

/** The outcome of a POST without an answer of the service about the record itself. */
export type Unanswered =
  | {
      readonly kind: 'notApplied'
      readonly reason: NotAppliedReason
      readonly retryAfterMs: number | undefined
    }
  | {
      readonly kind: 'unknown'
      readonly reason: UnknownReason
      /** The same object for all records without an answer of one `$batch`; undefined: the record was posted by itself. */
      readonly together?: SentTogether | undefined
      /** While it is `stillExecuting`: the time by the clock since which none of these records was seen, ms. */
      readonly sinceMs?: number | undefined
    }

/** One error as the upstream states it. */
export interface UpstreamErrorEntry {
  readonly code: string | undefined
  readonly message: string
  readonly target: string | undefined
}

/** The bodies of errors are short. JSON of more characters is not read: it could take long to parse. */
const MAX_ERROR_LENGTH = 65_536

/** An error reply of the upstream, whatever form its body had. */
export interface UpstreamError {
  readonly status: number
  /** `unreadable` covers HTML, an empty body, broken JSON and a body that is too long for an error. */
  readonly form: 'odata' | 'gateway' | 'array' | 'unreadable'
  /** In the upstream's order, the first 16; empty for an unreadable body. */
  readonly entries: readonly UpstreamErrorEntry[]
  /** The error around `entries` where these are its `details`: one more error, or only their heading. */
  readonly outer?: UpstreamErrorEntry
  /** How many further entries were not read; undefined: none. */
  readonly omitted?: number
}

/** The most entries that are read of an error. A record has a dozen members that may be wrong. */
const MAX_ENTRIES = 16

const text = z.string().catch('')
const name = z.string().nullish().catch(undefined)
const entry = z.object({ code: name, message: text, target: name })
const odata = z.object({ error: entry.extend({ details: firstOf(entry).nullish().catch(undefined) }) })
const gateway = z.object({ statusCode: z.number(), message: z.string() })
const array = firstOf(z.object({ ErrorCode: name, Message: text, ResourceIdentifier: name }))

/** Reads the first `MAX_ENTRIES` members of a list, and counts the others. */
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

/**
 * Reads an error body in any of the forms that the service and its gateway use: OData's `{"error":{…}}`, the gateway's
 * `{"statusCode","message"}` (service-facts 12), the V2 array (service.md 7). Never throws.
 */
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

/** What a reply says that changed nothing and whose request may be repeated (429, 503, 408); undefined for any other. */
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

/** True for 4xx, and for 501: a service that does not have what was asked for has not done it, and never will (RFC 9110 15.6.2). */
export function isRefusal(status: number): boolean {
  return (status >= 400 && status < 500) || status === 501
}

/**
 * Reads the answer to a POST. Only a 2xx with a readable record counts as accepted; a 2xx with HTML, nothing or broken JSON
 * shows that something happened, not what. 500, 502 and 504 may come after the write was applied.
 * `retryAfter` is the header's text: seconds or an HTTP date (RFC 9110 10.2.3); `nowMs` the time to count a date from.
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
  // The answer to what was done is elsewhere (RFC 9110 15.4.4).
  if (status === 303) return { kind: 'unknown', reason: 'unreadableReply' }
  // A redirect is never followed: its target was not configured.
  if (status >= 300 && status < 400)
    return { kind: 'notApplied', reason: 'redirected', retryAfterMs: undefined }
  return { kind: 'unknown', reason: 'serverError' }
}
