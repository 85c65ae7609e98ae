import type { Principal } from '../security.ts'
import type { Face } from '../store/marks.ts'
import type { Reply } from './reply.ts'

/** A request to the data service, alone or as part of a batch. */
export interface ServiceRequest {
  readonly method: string
  /** The path as sent, without the query. */
  readonly path: string
  /** The text after `?`, still percent-encoded; empty without one. */
  readonly query: string
  /** The value of a header field by its name in lower case. */
  readonly header: (name: string) => string | undefined
  readonly body: Buffer
  /** Scheme and authority by which the client reached the sandbox; links in answers begin with it. */
  readonly origin: string
  readonly principal: Principal
  /** Reads see nothing that was written after this effect (a stale read); undefined: everything. */
  readonly asOf: number | undefined
  /** The wait before each request of a V3 batch, ms; undefined: none. */
  readonly paceMs?: number | undefined
}

/** Answers one request of either face; unsupported requests get an error in that face's form. */
export type Service = (request: ServiceRequest) => Reply

/** Answers one request, or all requests of a batch after each other. */
export type PortService = (request: ServiceRequest) => Reply | Promise<Reply>

/** Where a path leads: the part before the resource, the version segment and the resource itself. */
export interface Route {
  readonly area: 'Learner' | 'Attendance'
  readonly version: 1 | 2 | 3
  /** The path up to and without the resource, as sent: the service root. */
  readonly root: string
  /** Decoded segments after the root. */
  readonly resource: readonly string[]
  /** Whether the root is that of lookups: `/V1/Lookup/Learner` (service-facts 13). */
  readonly isLookup?: true
}

/** True for the obsolete face: attendance at V1 and V2, but for the lookups. */
export function isLegacy({ area, version, isLookup }: Route): boolean {
  return area === 'Attendance' && version < 3 && isLookup !== true
}

/** The port that a path belongs to where V2 has one of its own: that of V2 has the obsolete face and the registration at V2. */
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
 * Finds the service root in a path: any prefix, then the area and the version in either order and any case, with
 * `odata` before the version or not, `Lookup` after it or not (service-facts 13; service.md 4). `undefined` for a path without a version or with broken
 * percent-encoding. The area defaults to Learner, and to Attendance in `AttendanceServiceFarm1`.
 */
export function findRoute(path: string): Route | undefined {
  const raw = path.split('/')
  // RFC 3986 6.2.2.2: an encoded letter is the letter, before the resource too.
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

/** A request that has found its service root. */
export interface RoutedRequest extends ServiceRequest {
  readonly route: Route
}

/** The service root that `@odata.context` of an answer names. */
export function contextRoot({ route, origin }: RoutedRequest): string {
  return `${origin}${route.root}`
}

/** The face of the service that a path belongs to: attendance at V1 and V2 is the legacy one. */
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
