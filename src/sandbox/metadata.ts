import { acceptedType } from '../http/media-type.ts'
import { attendanceV2Model } from '../model/attendance-v2.ts'
import { serviceModel } from '../model/service-model.ts'
import { type ServiceModel, toServiceDocument, writeCsdlJson, writeEdmx } from '../odata/index.ts'
import { jsonMediaType, jsonReply, methodNotAllowed, odataError, type Reply } from './http/reply.ts'
import { isLegacy, type RoutedRequest, type Route, type ServiceRequest } from './http/request.ts'
import { lookupSets } from './learner/samples.ts'
import { levelOf } from './query/presentation.ts'

const attendanceSets: readonly string[] = [
  'AttendanceRecords',
  'StatutoryAttendanceSessions',
  'StatutoryAttendanceRecordHistorys',
  'AttendanceLookups',
]

/** The sets that one root serves, in a model of its own for `$metadata` and the service document. */
function modelWith(isServed: (set: string) => boolean): ServiceModel {
  const { container } = serviceModel
  const entitySets = container.entitySets.filter(({ name }) => isServed(name))
  return { ...serviceModel, container: { ...container, entitySets } }
}

const isAttendance = (set: string): boolean => attendanceSets.includes(set)
const isLookup = (set: string): boolean => set === 'AttendanceLookups' || lookupSets[set] !== undefined

/** The model of each kind of root: the sets that its service document lists can be read below it. */
const rootModels = {
  Learner: modelWith((set) => !isAttendance(set)),
  Attendance: modelWith(isAttendance),
  LearnerLookup: modelWith((set) => isLookup(set) && !isAttendance(set)),
  AttendanceLookup: modelWith((set) => isLookup(set) && isAttendance(set)),
  // V2 has the registration only (service.md 9).
  LearnerV2: modelWith((set) => set === 'LearnerRegistrations'),
  Legacy: attendanceV2Model,
}

/** Forms of `$metadata`, the default one first. */
const forms = ['application/xml', 'application/json'] as const
const writers = { 'application/xml': writeEdmx, 'application/json': writeCsdlJson }
const notAcceptable = odataError(
  406,
  'NotAcceptable',
  `$metadata is offered as ${forms.join(' and ')}. Accept one of them.`,
)

/** Answers `GET <root>/` and `GET <root>/$metadata`; undefined for every other path. */
export function answerMetadata(request: RoutedRequest): Reply | undefined {
  const { route, origin } = request
  const [name, ...rest] = route.resource
  const asksMetadata = name?.toLowerCase() === '$metadata'
  if (rest.length > 0 || (name !== undefined && !asksMetadata)) return undefined
  if (request.method !== 'GET') return methodNotAllowed('GET')
  const model = rootModels[modelOf(route)]
  if (asksMetadata) {
    const form = formOf(request)
    if (form === undefined) return notAcceptable
    const headers = { 'Content-Type': form, 'OData-Version': '4.0', Vary: 'Accept' }
    return { status: 200, headers, body: writers[form](model) }
  }
  const level = levelOf(formatOf(request), request)
  const { value, ...context } = toServiceDocument(model, `${origin}${route.root}/$metadata`)
  const document = level === 'none' ? { value } : { ...context, value }
  return jsonReply(200, JSON.stringify(document), { 'Content-Type': jsonMediaType(level) })
}

/** Which model a root has. */
function modelOf(route: Route): keyof typeof rootModels {
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
