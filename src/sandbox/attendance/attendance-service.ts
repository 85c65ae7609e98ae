import { serviceNamespace } from '../../model/notation.ts'
import { type FunctionSegment, parseDate, parseInstant, parseJsonQuery } from '../../odata/index.ts'
import { methodNotAllowed, notFound, odataError, refuseDomain, type Reply } from '../http/reply.ts'
import type { RoutedRequest } from '../http/request.ts'
import type { Entity } from '../json.ts'
import type { QueryContext } from '../query/compile-query.ts'
import { type Collection, listedRows, readCollection } from '../query/read-collection.ts'
import { answerSet, readResource, type ServedSet } from '../query/serve-set.ts'
import type { School } from '../school.ts'
import { toRecordEntity } from './record.ts'
import {
  changedRecords,
  codeEntities,
  historyEntities,
  type RecordFace,
  recordSet,
  sessionEntities,
} from './sets.ts'
import { postRecord } from './write-mark.ts'

const listedSet = (name: string, type: string, entities: readonly Entity[]): ServedSet => ({
  ...{ context: name, typeName: `${serviceNamespace}.${type}` },
  rows: listedRows(entities),
})

/** Creates the service that answers all paths below `…/Attendance/V3` except `$batch` and `$metadata`. */
export function createAttendanceService(
  school: School,
  queryContext: () => QueryContext,
): (request: RoutedRequest) => Reply {
  const face: RecordFace = {
    name: 'V3',
    typeName: `${serviceNamespace}.AttendanceRecord`,
    toEntity: ({ view }) => toRecordEntity(view),
    post: (request) => postRecord(school, request),
  }
  const histories = (since?: number): ServedSet =>
    listedSet(
      'StatutoryAttendanceRecordHistorys',
      'StatutoryAttendanceRecordHistory',
      historyEntities(school, since),
    )
  /** The sets by name in lower case. All sets except AttendanceRecords are read-only and held in memory. */
  const sets = new Map<string, (asOf: number | undefined) => ServedSet>([
    ['attendancerecords', (asOf) => recordSet(school, face, asOf)],
    [
      'statutoryattendancesessions',
      () => listedSet('StatutoryAttendanceSessions', 'StatutoryAttendanceSession', sessionEntities(school)),
    ],
    ['statutoryattendancerecordhistorys', () => histories()],
    ['attendancelookups', () => listedSet('AttendanceLookups', 'AttendanceLookup', codeEntities(school))],
  ])
  const changes = new Map<string, (since: number) => Collection>([
    ['attendancerecords', (since) => changedRecords(school, face, since)],
    ['statutoryattendancerecordhistorys', histories],
  ])

  return (request) => {
    const { route } = request
    const refusal = refuseDomain(request.principal, 'Attendance')
    if (refusal !== undefined) return refusal
    const resource = readResource(route.resource)
    if (resource === undefined) return isUnreadableChanges(route.resource) ? startDateRequired : notFound
    const named = resource.set.toLowerCase()
    const name = route.isLookup ? lookupName(named) : named
    const set = sets.get(name)
    // A path with `Lookup` serves only lookups, as in the learner domains.
    if (set === undefined || (route.isLookup && name !== 'attendancelookups')) return notFound
    const { key, rest, isRaw } = resource
    const [next] = rest
    const call = next?.kind === 'function' && /(^|\.)changes$/i.test(next.name) ? next : undefined
    const changed = key === undefined && rest.length === 1 && !isRaw ? changes.get(name) : undefined
    if (call === undefined || changed === undefined)
      return answerSet(set(request.asOf), resource, queryContext(), request)
    if (request.method !== 'GET') return methodNotAllowed('GET')
    const since = readStartDate(call, request)
    return since === undefined ? startDateRequired : readCollection(changed(since), queryContext(), request)
  }
}

/** Returns true if a path that could not be parsed calls `Changes`, for example with an invalid time as argument. */
const isUnreadableChanges = ([set = '', call = '']: readonly string[]): boolean =>
  /^(attendancerecords|statutoryattendancerecordhistorys)$/i.test(set) && /^(\w+\.)*changes\(/i.test(call)

/**
 * Returns the name of the set that a path segment names, either directly or by a lookup type such as `AttendanceCode` (service-facts 7 and
 * 13).
 */
function lookupName(name: string): string {
  return name === 'attendancecode' || name === 'attendancecodes' ? 'attendancelookups' : name
}

const startDateRequired = odataError(
  400,
  'InvalidQuery',
  'SIMS.Changes has no valid parameter startDate. Nothing was read. Give a date and time with offset such as 2026-03-02T09:00:00Z, a date such as 2026-03-02, or an alias for one of these.',
)

/**
 * Returns the `startDate` parameter of `SIMS.Changes` in milliseconds since 1970. The documentation does not show the type of the
 * parameter, so a date without a time is accepted too. An alias is replaced by the value of its query option (OData URL conventions 5.3).
 * Returns `undefined` if the parameter is missing or has another form.
 */
function readStartDate({ parameters }: FunctionSegment, { query }: RoutedRequest): number | undefined {
  const [parameter, ...more] = parameters
  if (parameter?.name.toLowerCase() !== 'startdate' || more.length > 0) return undefined
  const { value: given } = parameter
  const isAlias = given.kind === 'path' && given.root.kind === 'alias' && given.segments.length === 0
  const value = isAlias ? parseJsonQuery(query).aliases?.get(given.root.name) : given
  if (value?.kind !== 'literal') return undefined
  if (value.type === 'Edm.DateTimeOffset') {
    const start = parseInstant(value.value)
    // Changes are stored in whole milliseconds. A start within a millisecond is rounded up, so that changes before the start are excluded.
    return start && start.ms + ((start.ticks ?? 0) > 0 ? 1 : 0)
  }
  return value.type === 'Edm.Date' ? parseDate(value.value) : undefined
}
