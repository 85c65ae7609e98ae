import { attendanceV2Model } from '../model/attendance-v2.ts'
import { serviceSets } from '../model/entity-sets.ts'
import { serviceModel } from '../model/service-model.ts'
import { type ServiceModel, toServiceDocument, writeEdmx } from '../odata/index.ts'
import { jsonMediaType, jsonReply, methodNotAllowed, odataError, type Reply } from './http/reply.ts'
import { isLegacy, type RoutedRequest, type Route, type ServiceRequest } from './http/request.ts'
import { lookupSets } from './learner/samples.ts'
import { levelOf } from './query/presentation.ts'

/** The sets that one root serves, in a model of its own for `$metadata` and the service document. */
function modelWith(isServed: (set: string) => boolean): ServiceModel {
  const { container } = serviceModel
  const entitySets = container.entitySets.filter(({ name }) => isServed(name))
  return { ...serviceModel, container: { ...container, entitySets } }
}

const isAttendance = (set: string): boolean =>
  serviceSets.some(({ name, securityDomain }) => name === set && securityDomain === 'Attendance')
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

const notAcceptable = odataError(406, 'NotAcceptable', '$metadata is offered as application/xml.')

/** Answers `GET <root>/` and `GET <root>/$metadata`; undefined for every other path. */
export function answerMetadata(request: RoutedRequest): Reply | undefined {
  const { route, origin } = request
  const [name, ...rest] = route.resource
  const asksMetadata = name?.toLowerCase() === '$metadata'
  if (rest.length > 0 || (name !== undefined && !asksMetadata)) return undefined
  if (request.method !== 'GET') return methodNotAllowed('GET')
  const model = rootModels[modelOf(route)]
  const format = formatOf(request)
  if (asksMetadata) {
    // Accept is disregarded (RFC 9110 12.5.1): clients send that of data with every request.
    if (format !== undefined && !/^(application\/)?xml$/i.test(format)) return notAcceptable
    const headers = { 'Content-Type': 'application/xml', 'OData-Version': '4.0' }
    return { status: 200, headers, body: writeEdmx(model) }
  }
  const level = levelOf(format, request)
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

function formatOf({ query }: ServiceRequest): string | undefined {
  const options = new URLSearchParams(query)
  return options.get('$format') ?? options.get('format') ?? undefined
}
