import { type ServerResponse, STATUS_CODES } from 'node:http'

import { AdapterError, toErrorBody } from '../errors.ts'
import { type Events, framesOf } from '../observability/events.ts'

/**
 * Answers a request that failed as a whole (batch-wire 5). A 401 or 403 has the gateway's form (service-facts 12), and every other error
 * has OData's form. If the reply has already begun, the connection is closed instead.
 */
export function sendError(response: ServerResponse, cause: unknown, events: Events, partner?: string): void {
  const error = toAdapterError(cause, events)
  events.requestRefused({ code: error.code, status: error.status, partner })
  if (response.headersSent || response.destroyed) {
    response.destroy()
    return
  }
  const json = encodeError(error)
  response.writeHead(error.status, STATUS_CODES[error.status] ?? '', {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(json),
    ...(error.status === 401 ? { 'WWW-Authenticate': 'Bearer' } : {}),
    ...(error.status === 503 ? { 'Retry-After': response.getHeader('Retry-After') ?? '5' } : {}),
    // The rest of a refused upload is not read, so the connection cannot be used again.
    ...(error.status === 413 ? { Connection: 'close' } : {}),
  })
  response.end(json)
}

export function encodeError(error: AdapterError): string {
  const isGateways = error.status === 401 || error.status === 403
  return JSON.stringify(
    isGateways ? { statusCode: error.status, message: error.message } : toErrorBody(error),
  )
}

function toAdapterError(cause: unknown, events: Events): AdapterError {
  if (cause instanceof AdapterError && cause.code !== 'ADP_INTERNAL') return cause
  const error = cause instanceof Error ? cause : undefined
  events.internalError({
    errorName: error?.name ?? typeof cause,
    stack: error === undefined ? [] : framesOf(error),
  })
  return cause instanceof AdapterError
    ? cause
    : new AdapterError(
        'ADP_INTERNAL',
        'An unexpected error occurred in the adapter. A write may have been applied. Look up the result before you send the request again.',
        { cause },
      )
}

/**
 * The code for a write that may have been applied. The code depends on the side, because V2 applies a write again if the client resends the
 * write.
 */
export type UnknownOutcome = 'ADP_OUTCOME_UNKNOWN' | 'ADP_V2_OUTCOME_UNKNOWN'

const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])
const LOOK_UP: Readonly<Record<UnknownOutcome, string>> = {
  ADP_OUTCOME_UNKNOWN:
    'The service did not answer after the request was sent. The request may have been applied. Look up the result before you send the request again.',
  ADP_V2_OUTCOME_UNKNOWN:
    'V2 did not answer after the request was sent. V2 may have applied the request, and applies the request a second time if you send it again. Look up the result before you send the request again.',
}

/** Returns the error for a request without a reply: `code` if the service may have applied it, otherwise `ADP_UPSTREAM_UNAVAILABLE`. */
export function lostReplyError(
  method: string | undefined,
  sent: boolean,
  code: UnknownOutcome,
  cause: Error,
): AdapterError {
  if (mayBeApplied(method, sent)) return new AdapterError(code, LOOK_UP[code], { cause })
  const effect = isSafeMethod(method)
    ? 'Nothing was read. Try again later.'
    : 'This request was not sent, but an earlier copy may have been applied. Send the same request again later.'
  return new AdapterError('ADP_UPSTREAM_UNAVAILABLE', `The service cannot be reached. ${effect}`, { cause })
}

export function slowUploadError(
  method: string | undefined,
  sent: boolean,
  code: UnknownOutcome = 'ADP_OUTCOME_UNKNOWN',
): AdapterError {
  return mayBeApplied(method, sent)
    ? new AdapterError(
        code,
        'The body of the request did not arrive completely, and a part of the body was already sent. The request may have been applied. Look up the result before you send the request again.',
      )
    : new AdapterError(
        'ADP_SLOW_CLIENT',
        'The body of the request arrived too slowly. Nothing was applied. Send the request again.',
      )
}

/** Returns true for a method that changes nothing (RFC 9110 9.2.1). */
export function isSafeMethod(method: string | undefined): boolean {
  return SAFE_METHODS.has(method ?? '')
}

function mayBeApplied(method: string | undefined, sent: boolean): boolean {
  return sent && !isSafeMethod(method)
}
