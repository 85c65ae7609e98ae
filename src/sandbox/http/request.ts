import type { Principal } from '../security.ts'
import type { Face } from '../store/marks.ts'
import type { Reply } from './reply.ts'

export interface ServiceRequest {
  readonly method: string
  /** The path as sent, without the query. */
  readonly path: string
  /** The percent-encoded text after `?`. Empty if there is no query. */
  readonly query: string
  /** Returns the value of a header field. `name` is in lower case. */
  readonly header: (name: string) => string | undefined
  readonly body: Buffer
  /** The scheme and authority that the client used, with which links in replies begin. */
  readonly origin: string
  readonly principal: Principal
  /** The number of the last effect (accepted write) that a stale read sees. `undefined` if reads see all writes. */
  readonly asOf: number | undefined
  /** The delay before each request of a V3 batch, in milliseconds. */
  readonly paceMs?: number | undefined
}

/** Answers one request. An unsupported request gets an error in the form of its interface (V2 or V3). */
export type Service = (request: ServiceRequest) => Reply

export type PortService = (request: ServiceRequest) => Reply | Promise<Reply>

export interface Route {
  readonly area: 'Learner' | 'Attendance'
  readonly version: 1 | 2 | 3
  /** The path up to the resource, as sent. */
  readonly root: string
  /** The decoded path segments after the root. */
  readonly resource: readonly string[]
  /** True for the root of lookups, such as `/V1/Lookup/Learner` (service-facts 13). */
  readonly isLookup?: true
}

/** Returns true for a path of V2, the obsolete interface: attendance at V1 and V2 except for the lookups. */
export function isLegacy({ area, version, isLookup }: Route): boolean {
  return area === 'Attendance' && version < 3 && isLookup !== true
}

/**
 * Returns the port that serves a path if V2 has a separate port. The port of V2 serves the obsolete interface and the registrations at V2.
 */
export function portOf(route: Route): Face {
  return isLegacy(route) || (route.area === 'Learner' && route.version === 2) ? 'V2' : 'V3'
}

const versions = new Map<string, Route['version']>([
  ['v1', 1],
  ['v2', 2],
  ['v3', 3],
])
const areas = new Map<string, Route['area']>([
  ['learner', 'Learner'],
  ['attendance', 'Attendance'],
])

/**
 * Finds the service root in a path (service-facts 13; service.md 4). The root has any prefix, then the area and the version in either
 * order, ignoring case. `odata` may precede the version, and `Lookup` may follow the version. The area defaults to Attendance below a
 * segment such as `AttendanceServiceFarm1`, and to Learner otherwise. Returns `undefined` if the path has no version or its
 * percent-encoding is malformed.
 */
export function findRoute(path: string): Route | undefined {
  const raw = path.split('/')
  // All segments are decoded, because an encoded letter is equivalent to the letter (RFC 3986 6.2.2.2).
  const decoded = raw.map(decode)
  const segments = decoded.filter((segment) => segment !== undefined)
  const at = segments.findIndex((segment) => versions.has(segment.toLowerCase()))
  const version = versions.get(segments[at]?.toLowerCase() ?? '')
  if (version === undefined || segments.length < raw.length) return undefined
  const isLookup = segments[at + 1]?.toLowerCase() === 'lookup'
  const last = isLookup ? at + 1 : at
  const after = areas.get(segments[last + 1]?.toLowerCase() ?? '')
  const odata = segments[at - 1]?.toLowerCase() === 'odata' ? 1 : 0
  const before = segments[at - 1 - odata]?.toLowerCase() ?? ''
  const area =
    after ?? areas.get(before) ?? (before.startsWith('attendanceservice') ? 'Attendance' : 'Learner')
  const end = last + (after === undefined ? 1 : 2)
  const resource = segments.slice(end)
  if (resource.at(-1) === '') resource.pop()
  const route = { area, version, root: raw.slice(0, end).join('/'), resource }
  return isLookup ? { ...route, isLookup } : route
}

export interface RoutedRequest extends ServiceRequest {
  readonly route: Route
}

/** Returns the URL of the service root, with which the `@odata.context` of a reply begins. */
export function contextRoot({ route, origin }: RoutedRequest): string {
  return `${origin}${route.root}`
}

/** Returns the interface that a path belongs to. Attendance at V1 and V2 is the legacy interface. */
export function faceOf(path: string): Face {
  const route = findRoute(path)
  return route !== undefined && isLegacy(route) ? 'V2' : 'V3'
}

function decode(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}
