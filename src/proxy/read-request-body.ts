import type { IncomingMessage } from 'node:http'

import { readBody } from '../http/body.ts'
import type { Slices } from '../http/slices.ts'
import type { HeldBytes } from './byte-budget.ts'

/**
 * Reads a request body within the limit of one request and the budget of all. The caller releases `held` when the request is
 * answered. Errors as `readBody`, and `ADP_OVERLOADED`.
 */
export function readRequestBody(
  request: IncomingMessage,
  maxBytes: number,
  held: HeldBytes,
  slices: Slices,
): Promise<Buffer> {
  return readBody(request, {
    maxBytes,
    contentEncoding: request.headers['content-encoding'],
    contentLength: request.headers['content-length'],
    onBytes: (count) => held.take(count),
    slices,
  })
}
