/** Who must act: the sender of the request or of one record, the author of the configuration, the upstream, or Markbridge. */
type ErrorClass = 'request' | 'record' | 'configuration' | 'upstream' | 'internal'

interface ErrorRule {
  readonly class: ErrorClass
  /** HTTP status of the whole reply, or of the part of one record for class `record`. */
  readonly status: number
  /** True if nothing was applied, so that sending the same bytes again can succeed. */
  readonly retryable: boolean
  /** True if the message is written for the client. Otherwise the client gets only the code. */
  readonly exposed: boolean
}

const request = (status: number): ErrorRule => ({ class: 'request', status, retryable: false, exposed: true })
const record = (status: number): ErrorRule => ({ class: 'record', status, retryable: false, exposed: true })

/** The table of all error codes with their meaning for the reply (batch-wire 5; replies.md lists the codes for clients). */
export const errorRules = {
  // The envelope is faulty: the whole request gets one error reply, and nothing was posted (batch-wire 1).
  ADP_MEDIA_TYPE: request(415),
  ADP_BOUNDARY: request(400),
  ADP_TRUNCATED: request(400),
  ADP_NESTING: request(400),
  ADP_PART_TYPE: request(400),
  ADP_PART_ENCODING: request(400),
  ADP_HEADER: request(400),
  ADP_CONTENT_ID: request(400),
  ADP_REQUEST_LINE: request(400),
  ADP_TARGET: request(400),
  ADP_LIMIT: request(400),
  ADP_TOO_LARGE: request(413),
  ADP_CONTENT_ENCODING: request(415),
  ADP_BODY: request(400),
  // The HTTP request around the envelope is faulty.
  ADP_HOST: request(400),
  ADP_PATH: request(400),
  ADP_METHOD_NOT_ALLOWED: request(405),
  ADP_NOT_ACCEPTABLE: request(406),
  ADP_NOT_FOUND: request(404),
  ADP_SUBSCRIPTION_KEY: request(401),
  ADP_TOKEN: request(401),
  ADP_FORBIDDEN: request(403),
  ADP_QUERY: request(400),
  ADP_SLOW_CLIENT: { class: 'request', status: 408, retryable: true, exposed: true },
  // One record is faulty: the other records proceed (batch-wire F22, F23, 4).
  ADP_METHOD: record(405),
  ADP_JSON: record(400),
  ADP_CHARSET: record(400),
  ADP_FIELD: record(400),
  ADP_UNMAPPED_FIELD: record(400),
  ADP_RECORD_LIMIT: record(400),
  // The upstream failed. OUTCOME_UNKNOWN is never retryable, because the write may have been applied (product.md 3).
  ADP_UPSTREAM_REFUSED: { class: 'upstream', status: 400, retryable: false, exposed: true },
  ADP_UPSTREAM_PROTOCOL: { class: 'upstream', status: 502, retryable: false, exposed: true },
  ADP_UPSTREAM_UNAVAILABLE: { class: 'upstream', status: 503, retryable: true, exposed: true },
  // V3 rejected the credentials that the configuration provides for a partner. The client cannot correct them.
  ADP_V3_CREDENTIALS: { class: 'upstream', status: 502, retryable: true, exposed: true },
  ADP_BUDGET_EXCEEDED: { class: 'upstream', status: 503, retryable: true, exposed: true },
  // A newer record of the same learner and event was applied first, so this record will never be applied.
  ADP_SUPERSEDED: { class: 'upstream', status: 409, retryable: false, exposed: true },
  // A newer record replaced this one, and it is not known whether this record was applied before.
  ADP_SUPERSEDED_UNKNOWN: { class: 'upstream', status: 409, retryable: false, exposed: true },
  ADP_OUTCOME_UNKNOWN: { class: 'upstream', status: 504, retryable: false, exposed: true },
  // V2 serves the partner and does not recognise a resend: if the client resends the write, V2 applies it again.
  ADP_V2_OUTCOME_UNKNOWN: { class: 'upstream', status: 504, retryable: false, exposed: true },
  // Markbridge itself failed. After JOURNAL_LOST the records may have been applied: resending the same bytes returns their result.
  ADP_JOURNAL_UNAVAILABLE: { class: 'internal', status: 503, retryable: true, exposed: true },
  // The journal is damaged or was replaced. The same bytes may be resent once an operator has restored it or accepted the loss.
  ADP_JOURNAL_DAMAGED: { class: 'internal', status: 503, retryable: true, exposed: true },
  ADP_JOURNAL_LOST: { class: 'internal', status: 504, retryable: false, exposed: true },
  // The stage of a partner cannot be read in time, so it is not known whether V2 or V3 serves the request.
  ADP_STAGE_UNKNOWN: { class: 'internal', status: 503, retryable: true, exposed: true },
  ADP_OVERLOADED: { class: 'internal', status: 503, retryable: true, exposed: true },
  ADP_CONFIGURATION: { class: 'configuration', status: 500, retryable: false, exposed: true },
  ADP_USAGE: { class: 'configuration', status: 500, retryable: false, exposed: true },
  ADP_INTERNAL: { class: 'internal', status: 500, retryable: false, exposed: false },
} as const satisfies Record<string, ErrorRule>

export type ErrorCode = keyof typeof errorRules

/** The location of a fault in the input. A member is absent if its value is not known; no value is guessed. */
export interface ErrorLocation {
  /** Byte offset from the start of the decompressed body, counted from 0. */
  readonly offset?: number
  /** Position of the record in the batch and in the reply, counted from 1. */
  readonly part?: number
  /** Position of the changeset in the batch, counted from 1. */
  readonly changeset?: number
  readonly contentId?: string
  /** JSON path or configuration path, such as `partners[0].stage`. */
  readonly path?: string
}

export interface ErrorDetail {
  readonly code: string
  readonly message: string
  readonly target?: string
}

interface AdapterErrorOptions {
  readonly at?: ErrorLocation
  readonly cause?: unknown
  readonly details?: readonly ErrorDetail[]
}

/** The only error that Markbridge throws. The message says what is wrong and what to do, and never contains a value of a record. */
export class AdapterError extends Error {
  override readonly name = 'AdapterError'
  readonly code: ErrorCode
  readonly at: ErrorLocation
  readonly details: readonly ErrorDetail[]

  constructor(code: ErrorCode, message: string, options: AdapterErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.at = options.at ?? {}
    this.details = options.details ?? []
  }

  get status(): number {
    return errorRules[this.code].status
  }
}

const fileCauses: Readonly<Record<string, string>> = {
  ENOENT: 'no such file',
  ENOTDIR: 'a part of the path is not a folder',
  EISDIR: 'it is a directory',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ELOOP: 'its symbolic links lead in a circle',
}

/** Returns the code of an error, such as `ENOENT`, or `undefined` if the error has no code. */
export const errorCodeOf = (cause: unknown): string | undefined =>
  cause instanceof Error && 'code' in cause ? String(cause.code) : undefined

/** Returns the reason in words why a file cannot be read, or the system's error code if no words are known for it. */
export function describeFileError(cause: unknown): string {
  const code = errorCodeOf(cause) ?? 'unknown cause'
  return fileCauses[code] ?? code
}

/** Body of the reply to a request that failed as a whole (batch-wire 5): the OData error form, with the location as `target`. */
interface ErrorBody {
  readonly error: {
    readonly code: string
    readonly message: string
    readonly details: readonly ErrorDetail[]
  }
}

/** Returns a location as text, such as `part 3 (Content-ID 7), offset 1024`, or an empty string if nothing is known. */
export function formatLocation(at: ErrorLocation): string {
  const words: string[] = []
  if (at.changeset !== undefined) words.push(`changeset ${at.changeset}`)
  if (at.part !== undefined) words.push(`part ${at.part}`)
  if (at.contentId !== undefined) words.push(`Content-ID ${at.contentId}`)
  if (at.offset !== undefined) words.push(`offset ${at.offset}`)
  if (at.path !== undefined) words.push(at.path)
  return words.join(', ')
}

/** Returns the `target` of an error. For a query this is the query option, as in the service's own errors; the message has the offset. */
function targetOf({ code, at }: AdapterError): string {
  return code === 'ADP_QUERY' ? (at.path ?? 'query') : formatLocation(at)
}

/** Does not show the text of an unexpected error (batch-wire 5). */
export function toErrorBody(error: AdapterError): ErrorBody {
  const exposed = errorRules[error.code].exposed
  const message = exposed ? error.message : 'The adapter failed on this request. Its log has the cause.'
  const target = targetOf(error)
  const own: ErrorDetail[] = target === '' ? [] : [{ code: error.code, message, target }]
  return { error: { code: error.code, message, details: exposed ? [...own, ...error.details] : [] } }
}
