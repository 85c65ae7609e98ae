import { attendanceV2Model } from '../model/attendance.ts'
import {
  type ExpandItem,
  isGuid,
  parseExpand,
  parseKey,
  parseQuery,
  printQuery,
  QueryError,
  type QueryOptions,
  toServiceDocument,
  writeEdmx,
} from '../odata/index.ts'

/** Returns true if a path segment names one entity, such as `Set(1)`. `Set()` names the whole set, as `Set` does. */
export function hasKey(segment: string): boolean {
  return segment.includes('(') && !segment.endsWith('()')
}

/**
 * Returns the guid of the key at the end of a decoded path, in lower case, or `undefined` if there is no key or the key is not a guid.
 * Accepts `Set(<guid>)` and `Set(ExternalID=<guid>)`, with spaces and apostrophes around the guid, as the legacy service does.
 */
export function readGuidKey(path: string): string | undefined {
  const segment = path.replace(/\/$/, '').split('/').at(-1) ?? ''
  const at = segment.indexOf('(')
  if (at < 0) return undefined
  try {
    const [part, ...others] = parseKey(segment.slice(at))
    if (part === undefined || others.length > 0 || (part.name ?? 'ExternalID') !== 'ExternalID')
      return undefined
    const { value } = part
    return value.kind === 'literal' && isGuid(value.value) ? value.value.toLowerCase() : undefined
  } catch (error) {
    if (error instanceof QueryError) return undefined
    throw error
  }
}

const STATUSES = 'EnrolmentStatuses'

/**
 * Returns the V3 query of a V2 read of `LearnerRegistations` (service.md 1.1). Adds a missing `$` to options such as `expand=`, and expands
 * `EnrolmentStatuses` within `Enrolments`, as the expand list of V3 does. Drops custom options. Throws `QueryError` (`ADP_QUERY`, 400) with
 * the position.
 */
export function toV3RegistrationQuery(rawQuery: string): string {
  const options = parseQuery(rawQuery)
  if (options.expand === undefined) return printQuery(options)
  return printQuery({ ...options, expand: options.expand.map(withStatuses) })
}

const SET = /^learnerregistr?ations(?:\(|$)/i

/**
 * Returns the V3 path for a decoded V2 path of all registrations or of one. Returns `undefined` for a deeper path, or a key that is not a
 * GUID.
 */
export function toV3RegistrationPath(path: string): string | undefined {
  const set = path.replace(/\/$/, '').split('/').at(-1) ?? ''
  if (!SET.test(set)) return undefined
  if (!hasKey(set)) return '/V3/LearnerRegistrations'
  const id = readGuidKey(set)
  return id === undefined ? undefined : `/V3/LearnerRegistrations(${id})`
}

function withStatuses(item: ExpandItem): ExpandItem {
  const name = item.path.map((segment) => segment.name).join('/')
  const asksMore = Object.keys(item.options).length > 0
  if (name !== 'Enrolments' || asksMore || item.suffix !== undefined) return item
  const options: QueryOptions = { expand: parseExpand(STATUSES) }
  return { ...item, options }
}

/** Returns the `$metadata` of the obsolete V2 service, with the flat type in `AttendanceService.Models.OData` (service.md 9.3). */
export const writeLegacyMetadata = (): string => writeEdmx(attendanceV2Model)

/** Returns the V2 service document as JSON. `metadataUrl` is the absolute URL of `$metadata`; without it the document has no context. */
export function writeLegacyServiceDocument(metadataUrl: string | undefined): string {
  const { value, ...context } = toServiceDocument(attendanceV2Model, metadataUrl ?? '')
  return JSON.stringify(metadataUrl === undefined ? { value } : { ...context, value })
}
