import type { IncomingMessage, ServerResponse } from 'node:http'

import { AdapterError } from '../errors.ts'
import { pathOf, readTarget } from '../http/request-target.ts'
import {
  readGuidKey,
  toV3RegistrationQuery,
  writeLegacyMetadata,
  writeLegacyServiceDocument,
} from '../translate/index.ts'
import type { ProxyContext } from './context.ts'
import type { PassThrough } from './pass-through.ts'
import { addressOf, serviceRoot } from './read-request.ts'
import { authoriseRead, jsonType, queryOf, sendRead } from './read-session.ts'

/** `GET …/V2/Attendance/$metadata`: the EDMX of the flat type; V3's own names other fields. */
export async function handleReadMetadata(
  context: ProxyContext,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  await authoriseRead(context, request)
  sendRead(response, writeLegacyMetadata(), 'application/xml')
}

/** `GET …/V2/Attendance/`: the service document. */
export async function handleReadServiceDocument(
  context: ProxyContext,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  await authoriseRead(context, request)
  const root = addressOf(request).replace(/\/$/, '')
  sendRead(response, writeLegacyServiceDocument(`${root}/$metadata`), jsonType('minimal'))
}

/**
 * `GET …/V2/LearnerRegistations` (spelled so, service.md 1.1) and its correct spelling, alone, with a key or with `/$count`: V3's
 * `LearnerRegistrations` with `$expand` and the V3 expand list, passed through; the path must be on the pass-through's list as
 * any other. Links of the reply lead back to the client's own path.
 */
export async function handleReadRegistrations(
  context: ProxyContext,
  request: IncomingMessage,
  response: ServerResponse,
  prefix: string,
  passThrough: PassThrough,
): Promise<void> {
  const authorisation = await authoriseRead(context, request)
  const query = toV3RegistrationQuery(queryOf(request))
  const path = pathOf(request)
  const set = REGISTRATIONS.exec(path)?.[1] ?? ''
  const resource = resourceOf(path)
  const { rawPath } = readTarget(request.url ?? '')
  const version = rawPath.slice(prefix.length).split('/')[1] ?? ''
  const root = serviceRoot(request, `${prefix}/${version}`)
  request.url = `/V3/LearnerRegistrations${resource}${query === '' ? '' : `?${query}`}`
  await passThrough.handle(request, response, authorisation, [
    { from: '/V3/LearnerRegistrations', to: `${root}/${set}` },
    { from: '/V3/$metadata', to: `${root}/$metadata` },
  ])
}

const REGISTRATIONS = /\/(learnerregistr?ations)[^/]*(?:\/\$count)?\/?$/i

/** What follows the set in V3's path: nothing, `/$count`, or the key as V3 writes it. Error: `ADP_NOT_FOUND` for no such key. */
function resourceOf(path: string): string {
  if (/\/\$count\/?$/i.test(path)) return '/$count'
  if (!path.includes('(')) return ''
  const id = readGuidKey(path)
  if (id === undefined)
    throw new AdapterError('ADP_NOT_FOUND', 'There is no learner registration with this key.')
  return `(${id})`
}
