import { createModelIndex } from '../odata/index.ts'
import { createAttendanceService } from './attendance/attendance-service.ts'
import { attempt } from './attempt.ts'
import { answerOperations } from './batch/answer-operations.ts'
import type { BatchParts } from './batch/answer-operations.ts'
import { methodNotAllowed, notFound } from './edge/refusals.ts'
import type { Reply } from './edge/reply.ts'
import { findRoute, isLegacy } from './edge/request.ts'
import type { Route, ServiceRequest } from './edge/request.ts'
import { createLearnerEntities } from './learner/learner-entities.ts'
import { createLearnerService } from './learner/learner-service.ts'
import type { LearnerSwitches } from './learner/learner-service.ts'
import { createLegacyService } from './legacy/legacy-service.ts'
import type { LegacySwitches } from './legacy/legacy-service.ts'
import { createMetadataService } from './metadata.ts'
import type { School } from './school.ts'
import { servedModel } from './served-model.ts'

/** Switches for unknown behaviour of the real service. */
export interface ServiceSwitches extends LegacySwitches, LearnerSwitches {
  /** Whether V3 has `$batch`: announced, and never shown (service-facts 3). */
  readonly batch: boolean
}

/** Answers one request of either face; unsupported requests get an error in that face's form. */
export type Service = (request: ServiceRequest) => Reply

/** The properties of the service that belong to one port. */
export interface ServicePort {
  /** Whether the port has the resource; 404 for others. */
  readonly serves: (route: Route) => boolean
  /** Answers single requests of a V3 batch by a fault. */
  readonly disturb: BatchParts['disturb']
}

/** Creates the data service over a school, for each port that it is offered on. Errors: `QueryError` for queries that cannot be read. */
export function createService(school: School, switches: ServiceSwitches): (port: ServicePort) => Service {
  const index = createModelIndex(servedModel)
  const queryContext = () => ({ index, now: school.now() })
  const attendance = createAttendanceService(school, queryContext, switches)
  const learner = createLearnerService(school, createLearnerEntities(school), queryContext, switches)
  const legacy = createLegacyService(school, switches)
  const metadata = createMetadataService()
  const answer = (route: Route, request: ServiceRequest): Reply => {
    const description = metadata(route, request)
    if (description !== undefined) return description
    if (route.area === 'Learner') return learner(route, request)
    return isLegacy(route) ? legacy(route, request) : attendance(route, request)
  }
  return ({ serves, disturb }) => {
    const find = (path: string): Route | undefined => {
      const route = findRoute(path)
      return route !== undefined && serves(route) ? route : undefined
    }
    const single: Service = (request) => {
      const route = find(request.path)
      return route === undefined ? notFound : answer(route, request)
    }
    const batch: BatchParts = { service: single, attempt: (work) => attempt(school, work), disturb }
    return (request) => {
      const route = find(request.path)
      // The learner domains at V1 and V2 have the batch of V3; that of the attendance domain is the legacy one.
      const isBatch = route?.resource.join('/').toLowerCase() === '$batch' && !isLegacy(route)
      if (!isBatch) return single(request)
      if (!switches.batch) return notFound
      return request.method === 'POST' ? answerOperations(batch, route, request) : methodNotAllowed('POST')
    }
  }
}
