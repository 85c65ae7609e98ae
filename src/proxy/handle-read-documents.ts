import type { IncomingMessage, ServerResponse } from 'node:http'

import { AdapterError } from '../errors.ts'
import { acceptedType } from '../http/accepted-type.ts'
import { readTarget } from '../http/request-target.ts'
import {
  metadataTypes,
  readGuidKey,
  toV3RegistrationQuery,
  writeLegacyMetadata,
  writeLegacyServiceDocument,
} from '../translate/index.ts'
import { readPreferences } from '../v2/index.ts'
import type { ProxyContext } from './context.ts'
import type { PassThrough } from './pass-through.ts'
import { addressOf, serviceRoot } from './read-request.ts'
import { authoriseRead, jsonType, queryOf, sendRead } from './answer-read.ts'

/** `GET …/V2/Attendance/$metadata`: the flat type, in XML or JSON; V3's own names other fields. Error: `ADP_NOT_ACCEPTABLE`. */
export async function handleReadMetadata(
  context: ProxyContext,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  await authoriseRead(context, request)
  const type = metadataTypeOf(request)
  if (type === undefined)
    throw new AdapterError(
      'ADP_NOT_ACCEPTABLE',
      `$metadata is offered as ${metadataTypes.join(' and ')}. Accept one of them.`,
    )
  response.setHeader('Vary', 'Accept')
  sendRead(response, writeLegacyMetadata(type), type)
}

/** `$format` wins over `Accept` (OData protocol 8.2.1). */
function metadataTypeOf(request: IncomingMessage): (typeof metadataTypes)[number] | undefined {
  const format = formatOf(request)?.toLowerCase()
  if (format === undefined) return acceptedType(request.headers.accept, metadataTypes)
  return metadataTypes.find((type) => type === format || type === `application/${format}`)
}

function formatOf(request: IncomingMessage): string | undefined {
  const query = new URLSearchParams(queryOf(request))
  return query.get('$format') ?? query.get('format') ?? undefined
}

/** `GET …/V2/Attendance/`: the service document. */
export async function handleReadServiceDocument(
  context: ProxyContext,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  await authoriseRead(context, request)
  const root = addressOf(request).replace(/\/$/, '')
  const { metadata } = readPreferences('', formatOf(request) ?? request.headers.accept ?? '')
  const url = metadata === 'none' ? undefined : `${root}/$metadata`
  sendRead(response, writeLegacyServiceDocument(url), jsonType(metadata))
}

/**
 * `GET …/V2/LearnerRegistations` (spelled so, service.md 1.1) and its correct spelling, alone, with a key, or what is below them:
 * V3's `LearnerRegistrations` with `$expand` and the V3 expand list, passed through; the path must be on the pass-through's list
 * as any other. Links of the reply lead back to the client's own path.
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
  const { path, rawPath } = readTarget(request.url ?? '')
  const segments = path.replace(/\/$/, '').split('/')
  const at = segments.findLastIndex((segment) => REGISTRATIONS.test(segment))
  const rawSegments = rawPath.split('/')
  const root = serviceRoot(request, rawSegments.slice(0, at).join('/'))
  const below = rawSegments.slice(at + 1, segments.length)
  const resource = [`/V3/LearnerRegistrations${keyOf(segments[at] ?? '')}`, ...below].join('/')
  // Next links lead to the path that was called, ids and contexts to the set by its name, as those of the legacy face.
  const isEntity = segments[at]?.includes('(') === true && below.length === 0
  const links = [...(isEntity ? [] : [{ from: resource, to: addressOf(request) }]), { from: '/V3', to: root }]
  request.url = `${resource}${query === '' ? '' : `?${query}`}`
  await passThrough.handle(request, response, authorisation, links)
}

const REGISTRATIONS = /^learnerregistr?ations(?:\(|$)/i

/** The key of a set's segment as V3 writes it, or nothing. Error: `ADP_NOT_FOUND` for a key that no registration has. */
function keyOf(segment: string): string {
  if (!segment.includes('(')) return ''
  const id = readGuidKey(segment)
  if (id === undefined)
    throw new AdapterError('ADP_NOT_FOUND', 'There is no learner registration with this key.')
  return `(${id})`
}
