import { createModelIndex } from '../odata/index.ts'
import { type AttendanceSwitches, createAttendanceService } from './attendance/attendance-service.ts'
import { answerOperations } from './batch/answer-batch.ts'
import { methodNotAllowed, notFound, type Reply } from './http/reply.ts'
import {
  findRoute,
  isLegacy,
  type RoutedRequest,
  type Route,
  type Service,
  type ServiceRequest,
} from './http/request.ts'
import { createLearnerService, type LearnerSwitches } from './learner/learner-service.ts'
import { createLegacyService, type LegacySwitches } from './legacy/legacy-service.ts'
import { answerMetadata, servedModel } from './metadata.ts'
import type { School } from './school.ts'

/** Switches for unknown behaviour of the real service. */
interface ServiceSwitches extends AttendanceSwitches, LegacySwitches, LearnerSwitches {
  /** Whether V3 has `$batch`: announced, and never shown (service-facts 3). */
  readonly batch: boolean
}

/** The properties of the service that belong to one port. */
interface ServicePort {
  /** Whether the port has the resource; 404 for others. */
  readonly serves: (route: Route) => boolean
  /** Answers single requests of a V3 batch by a fault; undefined: none strikes. */
  readonly disturb: (method: string, path: string) => Reply | undefined
}

/** Creates the data service over a school, for each port that it is offered on. Errors: `QueryError` for queries that cannot be read. */
export function createService(school: School, switches: ServiceSwitches): (port: ServicePort) => Service {
  const index = createModelIndex(servedModel)
  const queryContext = () => ({ index, now: school.now(), pageSize: switches.pageSize })
  const attendance = createAttendanceService(school, queryContext, switches)
  const learner = createLearnerService(school, queryContext, switches)
  const legacy = createLegacyService(school, switches)
  const answer = (request: RoutedRequest): Reply => {
    const description = answerMetadata(request)
    if (description !== undefined) return description
    if (request.route.area === 'Learner') return learner(request)
    return isLegacy(request.route) ? legacy(request) : attendance(request)
  }
  return ({ serves, disturb }) => {
    const find = ({ path }: ServiceRequest): Route | undefined => {
      const route = findRoute(path)
      return route !== undefined && serves(route) ? route : undefined
    }
    const single: Service = (request) => {
      const route = find(request)
      return route === undefined ? notFound : answer({ ...request, route })
    }
    return (request) => {
      const route = find(request)
      // The learner domains at V1 and V2 have the batch of V3; that of the attendance domain is the legacy one.
      const isBatch = route?.resource.join('/').toLowerCase() === '$batch' && !isLegacy(route)
      if (!isBatch) return single(request)
      if (!switches.batch) return notFound
      if (request.method !== 'POST') return methodNotAllowed('POST')
      return answerOperations({ service: single, attempt: school.attempt, disturb }, { ...request, route })
    }
  }
}
