import { serviceNamespace } from '../../model/notation.ts'
import { type FunctionSegment, parseDate, parseInstant } from '../../odata/index.ts'
import { methodNotAllowed, notFound, odataError, refuseDomain, type Reply } from '../http/reply.ts'
import type { RoutedRequest } from '../http/request.ts'
import type { Entity } from '../json.ts'
import { type QueryContext, readQuery } from '../query/compile-query.ts'
import { countEntities, readEntities } from '../query/read-entities.ts'
import { keyValues, readEntity, readResource, type Resource } from '../query/read-entity.ts'
import type { School } from '../school.ts'
import type { OnExisting } from '../store/marks.ts'
import { countRecords, readRecords, readRows, type RecordFace } from './read-records.ts'
import { type RecordTypes, toRecordEntity } from './record.ts'
import { codeEntities, historyEntities, sessionEntities } from './reference-sets.ts'
import { changedRows, rowById } from './rows.ts'
import { postRecord } from './write-mark.ts'

/** Switches of the attendance domain. */
export interface AttendanceSwitches {
  readonly onExisting: OnExisting
  /** Longest range of a read. */
  readonly maxDays: number
  /** Type texts of references in reads. */
  readonly types: RecordTypes
}

/** A set besides AttendanceRecords: read only, whole in memory. */
interface ReferenceSet {
  readonly name: string
  readonly type: string
  readonly key: readonly string[]
  /** `since` asks for the changes since an instant, where the set has that function. */
  readonly entities: (school: School, since?: number) => readonly Entity[]
  readonly hasChanges?: true
}

const referenceSets: Readonly<Record<string, ReferenceSet>> = {
  statutoryattendancesessions: {
    name: 'StatutoryAttendanceSessions',
    type: 'StatutoryAttendanceSession',
    key: ['ExternalID'],
    entities: sessionEntities,
  },
  statutoryattendancerecordhistorys: {
    name: 'StatutoryAttendanceRecordHistorys',
    type: 'StatutoryAttendanceRecordHistory',
    key: ['ExternalID'],
    entities: historyEntities,
    hasChanges: true,
  },
  attendancelookups: {
    name: 'AttendanceLookups',
    type: 'AttendanceLookup',
    key: ['ExternalID', 'LookupType'],
    entities: codeEntities,
  },
}

/** Creates the V3 attendance service: everything below `…/Attendance/V3` but `$batch` and `$metadata`. */
export function createAttendanceService(
  school: School,
  queryContext: () => QueryContext,
  { onExisting, maxDays, types }: AttendanceSwitches,
): (request: RoutedRequest) => Reply {
  const typeName = `${serviceNamespace}.AttendanceRecord`
  const face = (): RecordFace => ({
    ...{ name: 'V3', typeName, maxDays, recordedOnly: false },
    toEntity: (row) => toRecordEntity(row.view, types),
    queryContext: queryContext(),
  })

  const records = (resource: Resource, request: RoutedRequest): Reply => {
    if (resource.key === undefined) {
      if (request.method === 'POST') return postRecord(school, onExisting, queryContext().index, request)
      if (request.method !== 'GET') return methodNotAllowed('GET', 'POST')
      return readRecords(school, face(), request)
    }
    if (request.method !== 'GET') return methodNotAllowed('GET')
    const [id] = keyValues(resource.key, ['ExternalID']) ?? []
    const row = id === undefined ? undefined : rowById(school, id, { face: 'V3', asOf: request.asOf })
    if (row === undefined) return notFound
    const entity = toRecordEntity(row.view, types)
    const target = { ...resource, typeName, context: 'AttendanceRecords', entity }
    return readEntity(target, queryContext(), request)
  }

  const reference = (
    set: ReferenceSet,
    resource: Resource,
    request: RoutedRequest,
    since?: number,
  ): Reply => {
    if (request.method !== 'GET') return methodNotAllowed('GET')
    const entities = set.entities(school, since)
    const collection = { typeName: `${serviceNamespace}.${set.type}`, context: set.name, entities }
    if (resource.key === undefined) {
      const isCount = resource.rest[0]?.kind === '$count'
      return (isCount ? countEntities : readEntities)(collection, queryContext(), request)
    }
    const values = keyValues(resource.key, set.key)
    const entity = entities.find((one) => set.key.every((name, index) => one[name] === values?.[index]))
    return entity === undefined
      ? notFound
      : readEntity({ ...resource, ...collection, entity }, queryContext(), request)
  }

  return (request) => {
    const { route } = request
    const refusal = refuseDomain(request.principal, 'Attendance')
    if (refusal !== undefined) return refusal
    const resource = readResource(route.resource)
    if (resource === undefined) return isUnreadableChanges(route.resource) ? startDateRequired : notFound
    const name = route.isLookup ? lookupName(resource.set.toLowerCase()) : resource.set.toLowerCase()
    const set = referenceSets[name]
    // Its root has the lookups and nothing else, as that of the learner lookups.
    if (route.isLookup && set?.name !== 'AttendanceLookups') return notFound
    const isRecords = name === 'attendancerecords'
    const [next, ...beyond] = resource.rest
    if (next === undefined || resource.key !== undefined) {
      if (isRecords) return records(resource, request)
      return set === undefined ? notFound : reference(set, resource, request)
    }
    if (beyond.length > 0 || resource.isRaw) return notFound
    if (next.kind === '$count' && set !== undefined) return reference(set, resource, request)
    const isChanges = next.kind === 'function' && /(^|\.)changes$/i.test(next.name)
    if (!(isRecords && next.kind === '$count') && !(isChanges && (isRecords || set?.hasChanges === true)))
      return notFound
    if (request.method !== 'GET') return methodNotAllowed('GET')
    if (next.kind !== 'function') return countRecords(school, face(), request)
    const since = readStartDate(next, request)
    if (since === undefined) return startDateRequired
    if (set !== undefined) return reference(set, resource, request, since)
    // All marks of a school may have changed: they are read in their own order, or not at all.
    return readRows(face(), (after) => changedRows(school, since, after), request)
  }
}

/** A path whose argument is not a literal, such as a time that does not exist. */
const isUnreadableChanges = ([set = '', call = '']: readonly string[]): boolean =>
  /^(attendancerecords|statutoryattendancerecordhistorys)$/i.test(set) && /^(\w+\.)*changes\(/i.test(call)

/** Below `/V1/Lookup/Attendance` the lookup may go by its set or by its type (service-facts 7 and 13). */
function lookupName(name: string): string {
  return name === 'attendancecode' || name === 'attendancecodes' ? 'attendancelookups' : name
}

const startDateRequired = odataError(
  400,
  'InvalidQuery',
  'SIMS.Changes needs the parameter startDate: a date and time with offset such as 2026-03-02T09:00:00Z, a date such as 2026-03-02, or an alias for one.',
)

/**
 * The one parameter of `SIMS.Changes` in milliseconds; its type is not shown, so a date alone is read too. An alias stands
 * for the value of an option of that name (OData URL conventions 5.3).
 */
function readStartDate({ parameters }: FunctionSegment, { query }: RoutedRequest): number | undefined {
  const [parameter, ...more] = parameters
  if (parameter?.name.toLowerCase() !== 'startdate' || more.length > 0) return undefined
  const { value: given } = parameter
  const isAlias = given.kind === 'path' && given.root.kind === 'alias' && given.segments.length === 0
  const value = isAlias ? readQuery(query).aliases?.get(given.root.name) : given
  if (value?.kind !== 'literal') return undefined
  if (value.type === 'Edm.DateTimeOffset') return parseInstant(value.value)?.ms
  return value.type === 'Edm.Date' ? parseDate(value.value) : undefined
}
