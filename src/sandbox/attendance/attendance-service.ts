import { serviceNamespace } from '../../model/notation.ts'
import { QueryError } from '../../odata/index.ts'
import type { FunctionSegment } from '../../odata/index.ts'
import { parseDate, parseInstant } from '../../odata/typed/scalar.ts'
import { methodNotAllowed, notFound, refuseDomain } from '../edge/refusals.ts'
import { odataError } from '../edge/reply.ts'
import type { Reply } from '../edge/reply.ts'
import type { Route, ServiceRequest } from '../edge/request.ts'
import { compileQuery } from '../query/compile-query.ts'
import type { QueryContext } from '../query/compile-query.ts'
import type { Entity } from '../query/compiled-query.ts'
import { presentationOf } from '../query/presentation.ts'
import { countEntities, readEntities } from '../query/read-entities.ts'
import { readEntity } from '../query/read-entity.ts'
import { readQuery } from '../query/read-query.ts'
import { keyValues, readResource } from '../query/resource.ts'
import type { Resource } from '../query/resource.ts'
import type { School } from '../school.ts'
import type { OnExisting } from '../store/marks.ts'
import { rowById } from './augmented-rows.ts'
import type { Row, RowPosition } from './recorded-row.ts'
import { changedRows } from './changed-rows.ts'
import { pageRows } from './page-rows.ts'
import { postRecord } from './post-record.ts'
import type { ReadLimits, RecordFace } from './read-records.ts'
import { countRecords, readRecords } from './read-records.ts'
import type { RecordTypes } from './record-entity.ts'
import { toRecordEntity } from './record-entity.ts'
import { codeEntities, historyEntities, sessionEntities } from './reference-sets.ts'

/** Switches of the attendance domain. */
export interface AttendanceSwitches extends ReadLimits {
  readonly onExisting: OnExisting
  readonly types: RecordTypes
}

/** A set besides AttendanceRecords: read only, whole in memory. */
interface ReferenceSet {
  readonly name: string
  readonly type: string
  readonly key: readonly string[]
  readonly entities: (school: School) => readonly Entity[]
  /** The changes since an instant; undefined: the set has no such function. */
  readonly changes?: (school: School, since: number) => readonly Entity[]
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
    entities: (school) => historyEntities(school),
    changes: historyEntities,
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
  switches: AttendanceSwitches,
): (route: Route, request: ServiceRequest) => Reply {
  const typeName = (type: string): string => `${serviceNamespace}.${type}`
  const toEntity: RecordFace['toEntity'] = (row) => toRecordEntity(row.view, switches.types)

  const face = (): RecordFace => ({
    name: 'V3',
    typeName: typeName('AttendanceRecord'),
    toEntity,
    recordedOnly: false,
    queryContext: queryContext(),
  })

  const records = (resource: Resource, route: Route, request: ServiceRequest): Reply => {
    if (resource.key === undefined) {
      if (request.method === 'POST')
        return postRecord(school, switches.onExisting, queryContext().index, route, request)
      if (request.method !== 'GET') return methodNotAllowed('GET', 'POST')
      return readRecords(school, face(), switches, route, request)
    }
    if (request.method !== 'GET') return methodNotAllowed('GET')
    const [id] = keyValues(resource.key, ['ExternalID']) ?? []
    const row = id === undefined ? undefined : rowById(school, id, { face: 'V3', asOf: request.asOf })
    if (row === undefined) return notFound
    const entity = toEntity(row)
    const about = {
      typeName: typeName('AttendanceRecord'),
      context: 'AttendanceRecords',
      entity: row.form?.(entity) ?? entity,
    }
    return readEntity({ ...resource, ...about }, queryContext(), switches.pageSize, route, request)
  }

  const reference = (set: ReferenceSet, resource: Resource, route: Route, request: ServiceRequest): Reply => {
    if (request.method !== 'GET') return methodNotAllowed('GET')
    const collection = { typeName: typeName(set.type), context: set.name, entities: set.entities(school) }
    if (resource.key === undefined)
      return readEntities(collection, queryContext(), switches.pageSize, route, request)
    const values = keyValues(resource.key, set.key)
    const entity = collection.entities.find((one) =>
      set.key.every((name, index) => one[name] === values?.[index]),
    )
    if (entity === undefined) return notFound
    const target = { ...resource, ...collection, entity }
    return readEntity(target, queryContext(), switches.pageSize, route, request)
  }

  const count = (set: ReferenceSet, request: ServiceRequest): Reply => {
    if (request.method !== 'GET') return methodNotAllowed('GET')
    const collection = { typeName: typeName(set.type), context: set.name, entities: set.entities(school) }
    return countEntities(collection, queryContext(), request)
  }

  const changedRecords = (segment: FunctionSegment, route: Route, request: ServiceRequest): Reply => {
    if (request.method !== 'GET') return methodNotAllowed('GET')
    const since = readStartDate(segment, request)
    if (since === undefined) return startDateRequired
    const options = readQuery(request.query)
    // All marks of a school may have changed: they are read in their own order, or not at all.
    if (options.orderby !== undefined)
      throw new QueryError('Changes come in the order of their writing', 0, '$orderby')
    const context = queryContext()
    const presentation = presentationOf(options, route, request, context.index)
    const query = compileQuery(options, typeName('AttendanceRecord'), context, presentation.describe)
    const source = (after: RowPosition | undefined): Iterable<Row> => changedRows(school, since, after)
    return pageRows({ source, toEntity, query, presentation, options, pageSize: switches.pageSize, request })
  }

  const changedEntities = (
    { name, type, list }: { name: string; type: string; list: (since: number) => readonly Entity[] },
    segment: FunctionSegment,
    route: Route,
    request: ServiceRequest,
  ): Reply => {
    if (request.method !== 'GET') return methodNotAllowed('GET')
    const since = readStartDate(segment, request)
    if (since === undefined) return startDateRequired
    const collection = { typeName: typeName(type), context: name, entities: list(since) }
    return readEntities(collection, queryContext(), switches.pageSize, route, request)
  }

  return (route, request) => {
    const refusal = refuseDomain(request.principal, 'Attendance')
    if (refusal !== undefined) return refusal
    const resource = readResource(route.resource)
    if (resource === undefined) return isUnreadableChanges(route) ? startDateRequired : notFound
    const name = route.isLookup ? lookupName(resource.set.toLowerCase()) : resource.set.toLowerCase()
    const set = referenceSets[name]
    // Its root has the lookups and nothing else, as that of the learner lookups.
    if (route.isLookup && set?.name !== 'AttendanceLookups') return notFound
    const isRecords = name === 'attendancerecords'
    const [next, ...beyond] = resource.rest
    if (next === undefined || resource.key !== undefined) {
      if (isRecords) return records(resource, route, request)
      return set === undefined ? notFound : reference(set, resource, route, request)
    }
    if (beyond.length > 0 || resource.isRaw) return notFound
    if (next.kind === '$count' && set !== undefined) return count(set, request)
    if (next.kind === '$count' && isRecords)
      return request.method === 'GET'
        ? countRecords(school, face(), switches, route, request)
        : methodNotAllowed('GET')
    if (next.kind !== 'function' || !/(^|\.)changes$/i.test(next.name)) return notFound
    if (isRecords) return changedRecords(next, route, request)
    const listed = set?.changes
    if (set === undefined || listed === undefined) return notFound
    return changedEntities({ ...set, list: (since) => listed(school, since) }, next, route, request)
  }
}

/** A path whose argument is not a literal, such as a time that does not exist. */
const isUnreadableChanges = ({ resource: [set = '', call = ''] }: Route): boolean =>
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
function readStartDate({ parameters }: FunctionSegment, { query }: ServiceRequest): number | undefined {
  const [parameter, ...more] = parameters
  if (parameter?.name.toLowerCase() !== 'startdate' || more.length > 0) return undefined
  const { value: given } = parameter
  const isAlias = given.kind === 'path' && given.root.kind === 'alias' && given.segments.length === 0
  const value = isAlias ? readQuery(query).aliases?.get(given.root.name) : given
  if (value?.kind !== 'literal') return undefined
  if (value.type === 'Edm.DateTimeOffset') return parseInstant(value.value)?.ms
  return value.type === 'Edm.Date' ? parseDate(value.value) : undefined
}
