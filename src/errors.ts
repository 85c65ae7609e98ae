/** Who has to act on an error: the client's request, one record in it, the configuration, the upstream, or Markbridge. */
type ErrorClass = 'request' | 'record' | 'configuration' | 'upstream' | 'internal'

interface ErrorRule {
  readonly class: ErrorClass
  /** HTTP status of the whole reply (class `record`: of that record's part). */
  readonly status: number
  /** True where sending the same bytes again can succeed, because nothing was applied. */
  readonly retryable: boolean
  /** True where the message is written for the client; otherwise the client reads the code only. */
  readonly exposed: boolean
}

const request = (status: number): ErrorRule => ({ class: 'request', status, retryable: false, exposed: true })
const record = (status: number): ErrorRule => ({ class: 'record', status, retryable: false, exposed: true })

/** The one table of error codes: what each means for the reply (batch-wire 5; replies.md lists them for clients). */
export const errorRules = {
  // The envelope: answered once, nothing was posted (batch-wire 1).
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
  // The request around it.
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
  // One record: the others proceed (batch-wire F22, F23, 4).
  ADP_METHOD: record(405),
  ADP_JSON: record(400),
  ADP_CHARSET: record(400),
  ADP_FIELD: record(400),
  ADP_UNMAPPED_FIELD: record(400),
  ADP_RECORD_LIMIT: record(400),
  // The upstream. OUTCOME_UNKNOWN is never retryable: the write may have been applied (product.md 3).
  ADP_UPSTREAM_REFUSED: { class: 'upstream', status: 400, retryable: false, exposed: true },
  ADP_UPSTREAM_PROTOCOL: { class: 'upstream', status: 502, retryable: false, exposed: true },
  ADP_UPSTREAM_UNAVAILABLE: { class: 'upstream', status: 503, retryable: true, exposed: true },
  // What the configuration lends a partner for V3, so that its client cannot mend it.
  ADP_V3_CREDENTIALS: { class: 'upstream', status: 502, retryable: true, exposed: true },
  ADP_BUDGET_EXCEEDED: { class: 'upstream', status: 503, retryable: true, exposed: true },
  // A record that was not applied before a newer one of its learner and event was: it never will be.
  ADP_SUPERSEDED: { class: 'upstream', status: 409, retryable: false, exposed: true },
  // As above, but whether it was applied before it gave way is not known.
  ADP_SUPERSEDED_UNKNOWN: { class: 'upstream', status: 409, retryable: false, exposed: true },
  ADP_OUTCOME_UNKNOWN: { class: 'upstream', status: 504, retryable: false, exposed: true },
  // As above, where V2 serves: it knows no resend, so what it applied is applied once more if it is sent again.
  ADP_V2_OUTCOME_UNKNOWN: { class: 'upstream', status: 504, retryable: false, exposed: true },
  // Markbridge itself. With JOURNAL_LOST the records may have been applied: the same bytes again get their answer.
  ADP_JOURNAL_UNAVAILABLE: { class: 'internal', status: 503, retryable: true, exposed: true },
  // The journal is not what it was: an operator restores it or accepts the loss, then the same bytes may be sent again.
  ADP_JOURNAL_DAMAGED: { class: 'internal', status: 503, retryable: true, exposed: true },
  ADP_JOURNAL_LOST: { class: 'internal', status: 504, retryable: false, exposed: true },
  // The stage of a partner, and with it who serves the request, cannot be known in time.
  ADP_STAGE_UNKNOWN: { class: 'internal', status: 503, retryable: true, exposed: true },
  ADP_OVERLOADED: { class: 'internal', status: 503, retryable: true, exposed: true },
  ADP_CONFIGURATION: { class: 'configuration', status: 500, retryable: false, exposed: true },
  ADP_USAGE: { class: 'configuration', status: 500, retryable: false, exposed: true },
  ADP_INTERNAL: { class: 'internal', status: 500, retryable: false, exposed: false },
} as const satisfies Record<string, ErrorRule>

/** A code of `errorRules`. */
export type ErrorCode = keyof typeof errorRules

/** Where in the input the fault lies; every member is known or absent, never guessed. */
export interface ErrorLocation {
  /** Byte offset from the start of the (decompressed) body, from 0. */
  readonly offset?: number
  /** Position of the record in the batch, from 1, as in the reply. */
  readonly part?: number
  /** Position of the changeset in the batch, from 1. */
  readonly changeset?: number
  readonly contentId?: string
  /** JSON path or configuration path, such as `partners[0].stage`. */
  readonly path?: string
}

/** One of several faults found in the same input. */
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

/** The only error Markbridge throws. Messages name what is wrong and what to do, and never hold a value of a record. */
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

  /** HTTP status of the reply that this error becomes. */
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

/** The code of an error, such as `ENOENT`; undefined: it has none. */
export const errorCodeOf = (cause: unknown): string | undefined =>
  cause instanceof Error && 'code' in cause ? String(cause.code) : undefined

/** Why a file cannot be read, in words; the code of the system where there are none. */
export function describeFileError(cause: unknown): string {
  const code = errorCodeOf(cause) ?? 'unknown cause'
  return fileCauses[code] ?? code
}

/** Body of a whole-request error (batch-wire 5): the OData error form, with the location as `target`. */
interface ErrorBody {
  readonly error: {
    readonly code: string
    readonly message: string
    readonly details: readonly ErrorDetail[]
  }
}

/** Writes a location as text: `part 3 (Content-ID 7), offset 1024`. Empty when nothing is known. */
export function formatLocation(at: ErrorLocation): string {
  const words: string[] = []
  if (at.changeset !== undefined) words.push(`changeset ${at.changeset}`)
  if (at.part !== undefined) words.push(`part ${at.part}`)
  if (at.contentId !== undefined) words.push(`Content-ID ${at.contentId}`)
  if (at.offset !== undefined) words.push(`offset ${at.offset}`)
  if (at.path !== undefined) words.push(at.path)
  return words.join(', ')
}

/** What an error is about: of a query the option, as the service itself has it; its message has the character. */
function targetOf({ code, at }: AdapterError): string {
  return code === 'ADP_QUERY' ? (at.path ?? 'query') : formatLocation(at)
}

/** The JSON body for a whole-request error. An unexpected error shows no text of its own (batch-wire 5). */
export function toErrorBody(error: AdapterError): ErrorBody {
  const exposed = errorRules[error.code].exposed
  const message = exposed ? error.message : 'The adapter failed on this request. Its log has the cause.'
  const target = targetOf(error)
  const own: ErrorDetail[] = target === '' ? [] : [{ code: error.code, message, target }]
  return { error: { code: error.code, message, details: exposed ? [...own, ...error.details] : [] } }
}
