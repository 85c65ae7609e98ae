import { attendanceV2Model } from '../model/attendance-v2.ts'
import { toServiceDocument, writeEdmx } from '../odata/index.ts'
import type { ServiceModel } from '../odata/index.ts'
import { methodNotAllowed } from './edge/refusals.ts'
import { jsonReply } from './edge/reply.ts'
import type { Reply } from './edge/reply.ts'
import type { Route, ServiceRequest } from './edge/request.ts'
import { modelOfArea } from './served-model.ts'

/** Answers `GET <root>/` and `GET <root>/$metadata`; undefined for every other path. */
export type MetadataService = (route: Route, request: ServiceRequest) => Reply | undefined

/** Creates the answers that describe the services; each document is written once. */
export function createMetadataService(): MetadataService {
  const models = {
    Learner: modelOfArea('Learner'),
    Attendance: modelOfArea('Attendance'),
    Legacy: attendanceV2Model,
  }
  const documents = new Map<ServiceModel, string>()
  const edmxOf = (model: ServiceModel): string => {
    const written = documents.get(model) ?? writeEdmx(model)
    documents.set(model, written)
    return written
  }
  return ({ area, version, root, resource }, { method, origin }) => {
    const [name, ...rest] = resource
    const asksMetadata = name?.toLowerCase() === '$metadata'
    if (rest.length > 0 || (name !== undefined && !asksMetadata)) return undefined
    if (method !== 'GET') return methodNotAllowed('GET')
    const model = models[area === 'Attendance' && version < 3 ? 'Legacy' : area]
    if (asksMetadata)
      return {
        status: 200,
        headers: { 'Content-Type': 'application/xml', 'OData-Version': '4.0' },
        body: edmxOf(model),
      }
    return jsonReply(200, JSON.stringify(toServiceDocument(model, `${origin}${root}/$metadata`)))
  }
}
