import type { Face } from '../store/mark.ts'
import type { Principal } from '../security/gateway.ts'

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
  /** Service root that `@odata.context` names; undefined: the one that was called (service-facts 14). */
  readonly contextUrl?: string
  /** Reads see nothing that was written after this effect (a stale read); undefined: everything. */
  readonly asOf?: number
}

/** Where a path leads: the part before the resource, the version segment and the resource itself. */
export interface Route {
  readonly area: 'Learner' | 'Attendance'
  readonly version: 1 | 2 | 3
  /** The path up to and without the resource, as sent: the service root. */
  readonly root: string
  /** Decoded segments after the root. */
  readonly resource: readonly string[]
}

const VERSION = /^v([123])$/i
const areas: Readonly<Record<string, Route['area']>> = { learner: 'Learner', attendance: 'Attendance' }

/**
 * Finds the service root in a path: any prefix, then the area and the version in either order and any case, with
 * `odata` before the version or not (service-facts 13; service.md 4). `undefined` for a path without a version or with broken
 * percent-encoding. The area defaults to Learner, and to Attendance in `AttendanceServiceFarm1`.
 */
export function findRoute(path: string): Route | undefined {
  const raw = path.split('/')
  const at = raw.findIndex((segment) => VERSION.test(segment))
  const version = versionOf(raw[at])
  if (version === undefined) return undefined
  const after = areas[raw[at + 1]?.toLowerCase() ?? '']
  const odata = raw[at - 1]?.toLowerCase() === 'odata' ? 1 : 0
  const before = raw[at - 1 - odata]?.toLowerCase() ?? ''
  const area = after ?? areas[before] ?? (before.startsWith('attendanceservice') ? 'Attendance' : 'Learner')
  const end = at + (after === undefined ? 1 : 2)
  const resource = raw.slice(end).map(decode)
  const known = resource.filter((segment) => segment !== undefined)
  if (known.length < resource.length) return undefined
  if (known.at(-1) === '') known.pop()
  return { area, version, root: raw.slice(0, end).join('/'), resource: known }
}

/** The service root that `@odata.context` of an answer names. */
export function contextRoot({ root }: Route, { contextUrl, origin }: ServiceRequest): string {
  return contextUrl ?? `${origin}${root}`
}

/** The face of the service that a path belongs to: attendance at V1 and V2 is the legacy one. */
export function faceOf(path: string): Face {
  const route = findRoute(path)
  return route?.area === 'Attendance' && route.version < 3 ? 'V2' : 'V3'
}

function versionOf(segment: string | undefined): Route['version'] | undefined {
  const digit = VERSION.exec(segment ?? '')?.[1]
  return digit === '1' ? 1 : digit === '2' ? 2 : digit === '3' ? 3 : undefined
}

function decode(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}
