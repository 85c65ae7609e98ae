import { postRecord } from './attendance/post-record.ts'
import { odataError } from './edge/reply.ts'
import type { Reply } from './edge/reply.ts'
import { findRoute } from './edge/request.ts'
import type { Route, ServiceRequest } from './edge/request.ts'
import type { School } from './school.ts'
import type { OnExisting } from './store/marks.ts'

/** Switches for what is not known of the real service. */
export interface ServiceSwitches {
  /** What a POST does on a session that is marked already (service-facts 20). */
  readonly onExisting: OnExisting
}

/** Answers one request of either face; what it cannot serve gets an error in that face's form. */
export type Service = (request: ServiceRequest) => Reply

const notFound = odataError(404, 'NotFound', 'No resource of the service has this path.')

const methodNotAllowed = (...methods: string[]): Reply => {
  const reply = odataError(405, 'MethodNotAllowed', `The resource allows ${methods.join(', ')}.`)
  return { ...reply, headers: { ...reply.headers, Allow: methods.join(', ') } }
}

/** Creates the data service over a school. */
export function createService(school: School, switches: ServiceSwitches): Service {
  const attendanceV3 = (route: Route, request: ServiceRequest): Reply => {
    const [name, ...rest] = route.resource
    if (name?.toLowerCase() !== 'attendancerecords' || rest.length > 0) return notFound
    if (request.method === 'POST') return postRecord(school, switches.onExisting, route, request)
    return methodNotAllowed('GET', 'POST')
  }
  return (request) => {
    const route = findRoute(request.path)
    if (route === undefined) return notFound
    if (route.area === 'Attendance' && route.version === 3) return attendanceV3(route, request)
    return notFound
  }
}
