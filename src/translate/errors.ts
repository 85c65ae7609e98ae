import { type ErrorCode, errorRules } from '../errors.ts'
import type { V2Error } from '../v2/record/flat-reply.ts'
import type {
  NotAppliedReason,
  PostOutcome,
  UnknownReason,
  UpstreamError,
  UpstreamErrorEntry,
} from '../v3/outcome.ts'

/** A rule that maps an error of V3 to an error of the V2 array. The first rule whose conditions all hold applies. */
export interface ErrorMappingRule {
  /** The conditions on V3's error. An omitted condition always holds. */
  readonly status?: number
  readonly code?: RegExp
  readonly message?: RegExp
  readonly target?: RegExp
  readonly to: V2Error
}

const NO_EVENT: V2Error = { code: 'ATT_VAL_2', message: 'The AttendableEvent does not exist.' }
const NO_CODE: V2Error = { code: 'ATT_VAL_3', message: 'The SchoolAttendanceCode does not exist.' }
/** Excludes messages about a property, such as "property 'Event' not found", which concern the form of the record and not a resource. */
const OF_RESOURCE = String.raw`^(?![^]*\b(?:propert(?:y|ies)|member|field|element|attribute|column)\b)[^]*`
const MISSING = new RegExp(`${OF_RESOURCE}(?:not exist|not found|unknown|invalid|no such)`, 'i')

/**
 * The rules for the errors that service.md 7 names. The rules match V3's code first, then the target, then the text. An error that no rule
 * matches is passed on. If V3 gives `details`, each detail is matched separately. The error that contains the details is matched too, and
 * dropped if no rule matches.
 */
export const v2ErrorRules: readonly ErrorMappingRule[] = [
  { code: /^ATT_VAL_2$/i, to: NO_EVENT },
  { code: /^ATT_VAL_3$/i, to: NO_CODE },
  { target: /^\/?Event(?:\/ExternalID)?$/, message: MISSING, to: NO_EVENT },
  { target: /^\/?AttendanceCode(?:\/ExternalID)?$/, message: MISSING, to: NO_CODE },
  { message: aboutMissing('(?:attendable ?event|event|session)'), to: NO_EVENT },
  { message: aboutMissing('attendance ?code'), to: NO_CODE },
]

function aboutMissing(resource: string): RegExp {
  return new RegExp(`${OF_RESOURCE}\\b${resource}\\b[^.]{0,80}(?:not exist|not found)`, 'i')
}

interface V2Failure {
  readonly status: number
  readonly errors: readonly V2Error[]
}

export type FailedOutcome = Exclude<PostOutcome, { kind: 'accepted' }>

/** Converts a failed outcome into V2's form. An unknown outcome gets a code of its own, because the record may have been applied. */
export function toV2Failure(outcome: FailedOutcome, mapping: readonly ErrorMappingRule[]): V2Failure {
  switch (outcome.kind) {
    case 'refused':
      return toV2Refusal(outcome.error, mapping)
    case 'notApplied':
      return failureOf(notAppliedCodes[outcome.reason], notAppliedTexts[outcome.reason])
    case 'unknown':
      return failureOf(
        outcome.reason === 'superseded' ? 'ADP_SUPERSEDED_UNKNOWN' : 'ADP_OUTCOME_UNKNOWN',
        unknownTexts[outcome.reason],
      )
  }
}

/** Maps a refusal of the upstream. 401 and 403 keep their status. Every other refusal becomes the 400 of a V2 part (service.md 7). */
export function toV2Refusal(error: UpstreamError, mapping: readonly ErrorMappingRule[]): V2Failure {
  const status = error.status === 401 || error.status === 403 ? error.status : 400
  const errors = error.entries.map(
    (entry) => mapByRule(error.status, entry, mapping) ?? passOn(error.status, entry),
  )
  const outer = error.outer && mapByRule(error.status, error.outer, mapping)
  if (outer !== undefined) errors.unshift(outer)
  if (errors.length === 0)
    return { ...failureOf('ADP_UPSTREAM_REFUSED', noExplanation(error.status)), status }
  // Reports each V2 error once, because several errors of the upstream may map to the same V2 error.
  const distinct = [...new Map(errors.map((entry) => [`${entry.code} ${entry.message}`, entry])).values()]
  let length = 0
  const fits = distinct.findIndex(({ code, message }, index) => {
    length += code.length + message.length
    return index > 0 && length > MAX_TEXT
  })
  const kept = fits < 0 ? distinct : distinct.slice(0, fits)
  const omitted = distinct.length - kept.length + (error.omitted ?? 0)
  return { status, errors: omitted === 0 ? kept : [...kept, describeOmitted(omitted)] }
}

/** Maximum number of characters of V3's errors in one part. Limited, because finished parts wait in memory for earlier parts. */
const MAX_TEXT = 4_096
const MAX_MESSAGE = 2_000

const noExplanation = (status: number): string =>
  `The service refused the record (${status}) without an explanation. The record was not applied. Check the record and the credentials.`

function describeOmitted(omitted: number): V2Error {
  const message = `The service reported ${omitted} more ${omitted === 1 ? 'error' : 'errors'} for this record. The record was not applied. Correct the errors above first.`
  return { code: 'ADP_UPSTREAM_REFUSED', message }
}

const truncate = (text: string, max: number): string =>
  text.length > max ? `${text.slice(0, max - 1)}…` : text

function mapByRule(
  status: number,
  entry: UpstreamErrorEntry,
  mapping: readonly ErrorMappingRule[],
): V2Error | undefined {
  const message = entry.message.slice(0, MAX_MESSAGE)
  return mapping.find(
    (candidate) =>
      (candidate.status === undefined || candidate.status === status) &&
      (candidate.code === undefined || candidate.code.test(entry.code ?? '')) &&
      (candidate.message === undefined || candidate.message.test(message)) &&
      (candidate.target === undefined || candidate.target.test(entry.target ?? '')),
  )?.to
}

function passOn(status: number, { code, message: text }: UpstreamErrorEntry): V2Error {
  const message = truncate(text, MAX_MESSAGE)
  return {
    // Treats an empty code as missing, because a service without error codes may send one.
    code: code === undefined || code === '' ? 'ADP_UPSTREAM_REFUSED' : code.slice(0, 255),
    message: message === '' ? noExplanation(status) : message,
  }
}

/** Matches positions in a service's message, such as "at position 15" and "line 1, column 5". */
const PLACE =
  /(?:,[ ]?| )?\b(?:at or near |at |in |near )?(?:(?:character|char) )?(?:position|offset|index|column|line|character|char)[ :]{1,2}\d+/gi

/** Removes positions from a service's message about a query. The positions refer to the rewritten query and not to the client's query. */
export function withoutPlaces(message: string): string {
  return message.replace(PLACE, '').replaceAll(/ ?\(\)/g, '')
}

const notAppliedCodes: Readonly<Record<NotAppliedReason, ErrorCode>> = {
  notConnected: 'ADP_UPSTREAM_UNAVAILABLE',
  throttled: 'ADP_UPSTREAM_UNAVAILABLE',
  unavailable: 'ADP_UPSTREAM_UNAVAILABLE',
  stopped: 'ADP_UPSTREAM_UNAVAILABLE',
  ownCredentials: 'ADP_V3_CREDENTIALS',
  leaseLost: 'ADP_JOURNAL_UNAVAILABLE',
  redirected: 'ADP_UPSTREAM_PROTOCOL',
  batchRefused: 'ADP_UPSTREAM_PROTOCOL',
  budget: 'ADP_BUDGET_EXCEEDED',
  queueFull: 'ADP_OVERLOADED',
}

const notAppliedTexts: Readonly<Record<NotAppliedReason, string>> = {
  notConnected: 'The service cannot be reached. The record was not sent. Send it again later.',
  throttled:
    'The service refused the call because of its rate limit (429). The record was not applied. Send it again later.',
  unavailable: 'The service is not available. The record was not applied. Send it again later.',
  leaseLost:
    'The journal did not confirm in time that this instance may send. The record was not sent. Send it again later.',
  stopped:
    'The service refused the credentials of this batch. The record was not sent. Send it again with valid credentials.',
  ownCredentials:
    'The service refused the key or the client credentials of the adapter. The record was not applied. Ask the operator of the adapter to correct them.',
  redirected:
    'The service answered with a redirect. The record was not applied. Ask the operator of the adapter to check the base address.',
  batchRefused:
    'The service does not accept batches in this format. The record was not applied. Ask the operator of the adapter to check writeMode and batchFormat.',
  queueFull: 'The queue of calls is full. The record was not sent. Send it again later.',
  budget: 'The time for this batch ran out. The record was not sent. Send it again in a smaller batch.',
}

/**
 * The advice for an unknown outcome (docs/replies.md). The advice differs for a record that was posted alone, because its resend is a new
 * write.
 */
const RESEND =
  'The record may have been applied. Send the same batch again later to get the result, or look the mark up if the record was posted alone.'
const unknownTexts: Readonly<Record<UnknownReason, string>> = {
  connectionLost: `The connection was lost after the record was sent. ${RESEND}`,
  timeout: `No reply arrived in time after the record was sent. ${RESEND}`,
  unreadableReply: `The reply to the record cannot be read. ${RESEND}`,
  serverError: `The service failed while it processed the record. ${RESEND}`,
  otherRecord: `The reply is about another record. ${RESEND}`,
  overwritten: `No reply arrived, and another client has since written a newer mark. ${RESEND}`,
  notReadBack:
    'There was no time to find out whether an earlier attempt applied the record. The record may have been applied. Send the same batch again to get the result.',
  stillTried:
    'The record is not applied yet, and the adapter is still retrying it. Send the same batch again later to get the result.',
  stillExecuting: `No reply arrived in time, and the service may still be applying the records that were sent with this one. ${RESEND}`,
  superseded:
    'A newer mark for this learner and event replaced this record. This record may have been applied before, and will not be sent again. No action is needed.',
}

function failureOf(code: ErrorCode, message: string): V2Failure {
  return { status: errorRules[code].status, errors: [{ code, message }] }
}
