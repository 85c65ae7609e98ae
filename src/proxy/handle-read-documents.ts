import { AdapterError } from '../errors.ts'
import { acceptedType } from '../http/media-type.ts'
import {
  metadataTypes,
  readGuidKey,
  toV3RegistrationQuery,
  writeLegacyMetadata,
  writeLegacyServiceDocument,
} from '../translate/index.ts'
import { jsonType } from '../reads/index.ts'
import { readPreferences } from '../v2/index.ts'
import type { Exchange, Handle } from './exchange.ts'
import { sendRead } from './handle-read.ts'
import { addressOf, nextAddressOf, serviceRoot } from './requested-address.ts'

/** `GET …/V2/Attendance/$metadata`: the flat type, in XML or JSON; V3's own names other fields. Error: `ADP_NOT_ACCEPTABLE`. */
export const handleReadMetadata: Handle = (_context, exchange) => {
  const { response } = exchange
  const type = metadataTypeOf(exchange)
  if (type === undefined)
    throw new AdapterError(
      'ADP_NOT_ACCEPTABLE',
      `$metadata is offered as ${metadataTypes.join(' and ')}. Accept one of them.`,
    )
  response.setHeader('Vary', 'Accept')
  sendRead(response, [writeLegacyMetadata(type)], type)
}

/** `$format` wins over `Accept` (OData protocol 8.2.1). */
function metadataTypeOf(exchange: Exchange): (typeof metadataTypes)[number] | undefined {
  const format = formatOf(exchange)?.toLowerCase()
  if (format === undefined) {
    // ASP.NET answers a browser and a proxy generator of old with the XML as well.
    const accepted = acceptedType(exchange.request.headers.accept, [
      ...metadataTypes,
      'text/xml',
      'text/html',
    ])
    return accepted === 'text/xml' || accepted === 'text/html' ? 'application/xml' : accepted
  }
  return metadataTypes.find((type) => type === format || type === `application/${format}`)
}

function formatOf({ target }: Exchange): string | undefined {
  const query = new URLSearchParams(target.query)
  return query.get('$format') ?? query.get('format') ?? undefined
}

/** `GET …/V2/Attendance/`: the service document. */
export const handleReadServiceDocument: Handle = (_context, exchange) => {
  const { request, response } = exchange
  const root = addressOf(request).replace(/\/$/, '')
  const { metadata } = readPreferences('', formatOf(exchange) ?? request.headers.accept ?? '')
  const url = metadata === 'none' ? undefined : `${root}/$metadata`
  sendRead(response, [writeLegacyServiceDocument(url)], jsonType(metadata))
}

/**
 * `GET …/V2/LearnerRegistations` (spelled so, service.md 1.1) and its correct spelling, alone, with a key, or what is below them:
 * V3's `LearnerRegistrations` with `$expand` and the V3 expand list, passed through; the path must be on the pass-through's list
 * as any other. Links of the reply lead back to the client's own path.
 */
export const handleReadRegistrations: Handle = async ({ passThrough, reads }, exchange, authorisation) => {
  const { request, response, target, observer } = exchange
  const query = toV3RegistrationQuery(target.query.slice(1))
  const { path, rawPath } = target
  const segments = path.replace(/\/$/, '').split('/')
  const at = segments.findLastIndex((segment) => REGISTRATIONS.test(segment))
  const rawSegments = rawPath.split('/')
  const root = serviceRoot(request, rawSegments.slice(0, at).join('/'))
  const below = rawSegments.slice(at + 1, segments.length)
  const resource = [`/V3/LearnerRegistrations${keyOf(segments[at] ?? '')}`, ...below].join('/')
  // Next links lead to the path that was called, ids and contexts to the set by its name, as those of the legacy face.
  const isEntity = segments[at]?.includes('(') === true && below.length === 0
  const links = [
    ...(isEntity ? [] : [{ from: resource, to: addressOf(request), nextTo: nextAddressOf(reads, exchange) }]),
    { from: '/V3', to: root },
  ]
  request.url = `${resource}${query === '' ? '' : `?${query}`}`
  await passThrough.handle(request, response, authorisation, links)
  await observer.replied({ kind: 'read', reply: undefined })
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
