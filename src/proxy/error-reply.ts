import { type ServerResponse, STATUS_CODES } from 'node:http'

import { AdapterError, toErrorBody } from '../errors.ts'
import { type Events, framesOf } from '../observability/events.ts'

/**
 * Answers a request that failed as a whole (batch-wire 5). Missing or invalid credentials are told in the gateway's form
 * (service-facts 12), everything else in OData's. After the reply has begun it can only be broken off.
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

/** The JSON of such an answer. */
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
    : new AdapterError('ADP_INTERNAL', 'An unexpected error.', { cause })
}

/** The code of a write that may have been applied; V2 writes it a second time if it is sent again. */
export type UnknownOutcome = 'ADP_OUTCOME_UNKNOWN' | 'ADP_V2_OUTCOME_UNKNOWN'

const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])
const LOOK_UP: Readonly<Record<UnknownOutcome, string>> = {
  ADP_OUTCOME_UNKNOWN:
    'No answer came after the request was sent. It may have been applied: look it up first.',
  ADP_V2_OUTCOME_UNKNOWN:
    'V2 gave no answer after the request was sent, and may have applied it. V2 does not recognise a request that is sent again: it writes what it has applied a second time. Look it up first.',
}

/** The error of a request without a reply: a write that may have reached the service is never a plain failure. */
export function lossOf(
  method: string | undefined,
  sent: boolean,
  code: UnknownOutcome,
  cause: Error,
): AdapterError {
  return mayBeApplied(method, sent)
    ? new AdapterError(code, LOOK_UP[code], { cause })
    : new AdapterError('ADP_UPSTREAM_UNAVAILABLE', 'The service cannot be reached.', { cause })
}

/** The error of a request whose upload is given up because its client is too slow. */
export function slowUploadOf(
  method: string | undefined,
  sent: boolean,
  code: UnknownOutcome = 'ADP_OUTCOME_UNKNOWN',
): AdapterError {
  return mayBeApplied(method, sent)
    ? new AdapterError(
        code,
        'The body of the request did not arrive whole, and a part of it had been sent on. It may have been applied: look it up first.',
      )
    : new AdapterError(
        'ADP_SLOW_CLIENT',
        'The body of the request arrived too slowly. Nothing was applied; send it again.',
      )
}

/** True for a method that changes nothing (RFC 9110 9.2.1). */
export function isSafeMethod(method: string | undefined): boolean {
  return SAFE_METHODS.has(method ?? '')
}

function mayBeApplied(method: string | undefined, sent: boolean): boolean {
  return sent && !isSafeMethod(method)
}
