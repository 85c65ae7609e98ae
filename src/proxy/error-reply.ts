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
  const gateway = error.status === 401 || error.status === 403
  const body = gateway ? { statusCode: error.status, message: error.message } : toErrorBody(error)
  const json = JSON.stringify(body)
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
