/** What caused an error: the request, one record, the configuration, the upstream, or Markbridge itself. */
type ErrorClass = 'request' | 'record' | 'configuration' | 'upstream' | 'internal'

interface ErrorRule {
  readonly class: ErrorClass
  /** HTTP status of the whole reply, or for class `record` the status of the part that belongs to the record. */
  readonly status: number
  /** True if no record was applied and a resend of the same bytes can succeed. */
  readonly retryable: boolean
  /** True if the message is written for the client. Otherwise the client gets only the code. */
  readonly exposed: boolean
}

const request = (status: number): ErrorRule => ({ class: 'request', status, retryable: false, exposed: true })
const record = (status: number): ErrorRule => ({ class: 'record', status, retryable: false, exposed: true })

/** The status and the class of each error code (batch-wire 5). docs/replies.md explains the codes to clients. */
export const errorRules = {
  // The envelope of a batch is faulty. The whole batch gets one error reply, and no record is posted (batch-wire 1).
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
  // One record is faulty. The other records of the batch are posted (batch-wire F22, F23, 4).
  ADP_METHOD: record(405),
  ADP_JSON: record(400),
  ADP_CHARSET: record(400),
  ADP_FIELD: record(400),
  ADP_UNMAPPED_FIELD: record(400),
  ADP_RECORD_LIMIT: record(400),
  // The upstream failed. `ADP_OUTCOME_UNKNOWN` is not retryable, because the write may have been applied (product.md 3).
  ADP_UPSTREAM_REFUSED: { class: 'upstream', status: 400, retryable: false, exposed: true },
  ADP_UPSTREAM_PROTOCOL: { class: 'upstream', status: 502, retryable: false, exposed: true },
  ADP_UPSTREAM_UNAVAILABLE: { class: 'upstream', status: 503, retryable: true, exposed: true },
  // V3 rejected the credentials that the configuration provides for a partner. The client cannot correct them.
  ADP_V3_CREDENTIALS: { class: 'upstream', status: 502, retryable: true, exposed: true },
  ADP_BUDGET_EXCEEDED: { class: 'upstream', status: 503, retryable: true, exposed: true },
  // A newer record of the same learner and event was or may have been applied first, so this record will never be applied.
  ADP_SUPERSEDED: { class: 'upstream', status: 409, retryable: false, exposed: true },
  // A newer record of the same learner and event replaced this record, which may have been applied before.
  ADP_SUPERSEDED_UNKNOWN: { class: 'upstream', status: 409, retryable: false, exposed: true },
  ADP_OUTCOME_UNKNOWN: { class: 'upstream', status: 504, retryable: false, exposed: true },
  // V2 served the write, and its reply was lost. V2 does not recognise a resend, so a resend could be applied a second time.
  ADP_V2_OUTCOME_UNKNOWN: { class: 'upstream', status: 504, retryable: false, exposed: true },
  // Markbridge itself failed. With this code no record was posted, because the journal cannot be written.
  ADP_JOURNAL_UNAVAILABLE: { class: 'internal', status: 503, retryable: true, exposed: true },
  // The journal is damaged or was replaced. A resend succeeds only after an operator has restored the journal or accepted the loss.
  ADP_JOURNAL_DAMAGED: { class: 'internal', status: 503, retryable: true, exposed: true },
  // The journal failed while records were posted, so records may have been applied. A resend of the same bytes returns their result.
  ADP_JOURNAL_LOST: { class: 'internal', status: 504, retryable: false, exposed: true },
  // The journal knows the batch but no longer its result, so a resend of the same bytes gets this code again.
  ADP_RESULT_LOST: { class: 'internal', status: 504, retryable: false, exposed: true },
  // The stage of the partner could not be read in time, so Markbridge does not know whether V2 or V3 serves the request.
  ADP_STAGE_UNKNOWN: { class: 'internal', status: 503, retryable: true, exposed: true },
  ADP_OVERLOADED: { class: 'internal', status: 503, retryable: true, exposed: true },
  ADP_CONFIGURATION: { class: 'configuration', status: 500, retryable: false, exposed: true },
  ADP_USAGE: { class: 'configuration', status: 500, retryable: false, exposed: true },
  ADP_INTERNAL: { class: 'internal', status: 500, retryable: false, exposed: false },
} as const satisfies Record<string, ErrorRule>

export type ErrorCode = keyof typeof errorRules

/** The location of a fault in the input. A member is absent if its value is not known. */
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

/**
 * The base class of the errors that Markbridge reports to clients and operators. The message says what is wrong and what to do, and never
 * contains a value of a record.
 */
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
  EISDIR: 'the path is a folder',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ELOOP: 'the symbolic links of the path form a loop',
}

/** Returns the code of an error, such as `ENOENT`, or `undefined` if the error has no code. */
export const errorCodeOf = (cause: unknown): string | undefined =>
  cause instanceof Error && 'code' in cause ? String(cause.code) : undefined

/** Describes why a file cannot be read. Common error codes become words, and any other code is returned unchanged. */
export function describeFileError(cause: unknown): string {
  const code = errorCodeOf(cause) ?? 'unknown cause'
  return fileCauses[code] ?? code
}

/** The body of the reply to a request that failed as a whole (batch-wire 5). The body is an OData error with the location as `target`. */
interface ErrorBody {
  readonly error: {
    readonly code: string
    readonly message: string
    readonly details: readonly ErrorDetail[]
  }
}

/** Returns a location as text, such as `part 3, Content-ID 7, offset 1024`, or an empty string if the location is not known. */
export function formatLocation(at: ErrorLocation): string {
  const words: string[] = []
  if (at.changeset !== undefined) words.push(`changeset ${at.changeset}`)
  if (at.part !== undefined) words.push(`part ${at.part}`)
  if (at.contentId !== undefined) words.push(`Content-ID ${at.contentId}`)
  if (at.offset !== undefined) words.push(`offset ${at.offset}`)
  if (at.path !== undefined) words.push(at.path)
  return words.join(', ')
}

/** Returns the `target` of an error. For `ADP_QUERY` the target is the query option, as in the errors of the service. */
function targetOf({ code, at }: AdapterError): string {
  return code === 'ADP_QUERY' ? (at.path ?? 'query') : formatLocation(at)
}

const INTERNAL_MESSAGE =
  'The adapter failed on this request. A write may have been applied. Look up the result, and ask the operator for the cause in the log.'

/** Converts an error into the body of a reply. Replaces the message of an internal error, which is not meant for clients (batch-wire 5). */
export function toErrorBody(error: AdapterError): ErrorBody {
  const exposed = errorRules[error.code].exposed
  const message = exposed ? error.message : INTERNAL_MESSAGE
  const target = targetOf(error)
  const own: ErrorDetail[] = target === '' ? [] : [{ code: error.code, message, target }]
  return { error: { code: error.code, message, details: exposed ? [...own, ...error.details] : [] } }
}
