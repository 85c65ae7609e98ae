import type { IncomingMessage, ServerResponse } from 'node:http'

import { toV3RegistrationQuery, writeLegacyMetadata, writeLegacyServiceDocument } from '../translate/index.ts'
import type { ProxyContext } from './context.ts'
import type { PassThrough } from './pass-through.ts'
import { serviceRoot } from './read-request.ts'
import { authoriseRead, queryOf, sendJson } from './read-session.ts'

/** `GET …/V2/Attendance/$metadata`: the EDMX of the flat type; V3's own names other fields. */
export async function handleReadMetadata(
  context: ProxyContext,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  await authoriseRead(context, request)
  const edmx = writeLegacyMetadata()
  response.writeHead(200, {
    'Content-Type': 'application/xml',
    'Content-Length': Buffer.byteLength(edmx),
    'OData-Version': '4.0',
  })
  response.end(edmx)
}

/** `GET …/V2/Attendance/`: the service document. */
export async function handleReadServiceDocument(
  context: ProxyContext,
  request: IncomingMessage,
  response: ServerResponse,
  prefix: string,
): Promise<void> {
  await authoriseRead(context, request)
  const root = `${serviceRoot(request, prefix)}/V2/Attendance`
  sendJson(response, 200, writeLegacyServiceDocument(`${root}/$metadata`), 'minimal')
}

/**
 * `GET …/V2/LearnerRegistations` (spelled so, service.md 1.1): V3's `LearnerRegistrations` with `$expand` and the V3 expand
 * list, passed through; the path must be on the pass-through's list as any other.
 */
export async function handleReadRegistrations(
  context: ProxyContext,
  request: IncomingMessage,
  response: ServerResponse,
  _prefix: string,
  passThrough: PassThrough,
): Promise<void> {
  const authorisation = await authoriseRead(context, request)
  const query = toV3RegistrationQuery(queryOf(request))
  request.url = `/V3/LearnerRegistrations${query === '' ? '' : `?${query}`}`
  await passThrough.handle(request, response, authorisation)
}
