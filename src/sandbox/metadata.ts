import { acceptedType } from '../http/accepted-type.ts'
import { attendanceV2Model } from '../model/attendance-v2.ts'
import { toServiceDocument, writeCsdlJson, writeEdmx } from '../odata/index.ts'
import { methodNotAllowed } from './edge/refusals.ts'
import { jsonMediaType, jsonReply, odataError } from './edge/reply.ts'
import type { Reply } from './edge/reply.ts'
import { isLegacy } from './edge/request.ts'
import type { Route, ServiceRequest } from './edge/request.ts'
import { levelOf } from './query/presentation.ts'
import { rootModels } from './served-model.ts'

/** Answers `GET <root>/` and `GET <root>/$metadata`; undefined for every other path. */
export type MetadataService = (route: Route, request: ServiceRequest) => Reply | undefined

/** Forms of `$metadata`, the default one first. */
const forms = ['application/xml', 'application/json'] as const
const writers = { 'application/xml': writeEdmx, 'application/json': writeCsdlJson }
const notAcceptable = odataError(
  406,
  'NotAcceptable',
  `$metadata is offered as ${forms.join(' and ')}. Accept one of them.`,
)

/** Creates the answers that describe the services; each document is written once. */
export function createMetadataService(): MetadataService {
  const models = { ...rootModels, Legacy: attendanceV2Model }
  const documents = new Map<string, string>()
  const describe = (model: keyof typeof models, form: (typeof forms)[number]): string => {
    const key = `${model} ${form}`
    const written = documents.get(key) ?? writers[form](models[model])
    documents.set(key, written)
    return written
  }
  return (route, request) => {
    const { root, resource } = route
    const [name, ...rest] = resource
    const asksMetadata = name?.toLowerCase() === '$metadata'
    if (rest.length > 0 || (name !== undefined && !asksMetadata)) return undefined
    if (request.method !== 'GET') return methodNotAllowed('GET')
    const model = modelOf(route)
    if (asksMetadata) {
      const form = formOf(request)
      if (form === undefined) return notAcceptable
      const headers = { 'Content-Type': form, 'OData-Version': '4.0', Vary: 'Accept' }
      return { status: 200, headers, body: describe(model, form) }
    }
    const level = levelOf(formatOf(request), request)
    const { value, ...context } = toServiceDocument(models[model], `${request.origin}${root}/$metadata`)
    const document = level === 'none' ? { value } : { ...context, value }
    return jsonReply(200, JSON.stringify(document), { 'Content-Type': jsonMediaType(level) })
  }
}

/** Which model a root has. */
function modelOf(route: Route): keyof typeof rootModels | 'Legacy' {
  const { area, version, isLookup } = route
  if (isLegacy(route)) return 'Legacy'
  if (isLookup) return `${area}Lookup`
  return area === 'Learner' && version === 2 ? 'LearnerV2' : area
}

/** The form that a client asks for: `$format` wins over `Accept` (OData protocol 8.2.1). */
function formOf(request: ServiceRequest): (typeof forms)[number] | undefined {
  const format = formatOf(request)?.toLowerCase()
  if (format === undefined) {
    // ASP.NET answers a browser and a proxy generator of old with the XML as well.
    const accepted = acceptedType(request.header('accept'), [...forms, 'text/xml', 'text/html'])
    return accepted === 'text/xml' || accepted === 'text/html' ? 'application/xml' : accepted
  }
  return forms.find((form) => form === format || form === `application/${format}`)
}

function formatOf({ query }: ServiceRequest): string | undefined {
  const options = new URLSearchParams(query)
  return options.get('$format') ?? options.get('format') ?? undefined
}
