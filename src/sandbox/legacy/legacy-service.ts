import { attendanceV2Model } from '../../model/attendance-v2.ts'
import { createModelIndex } from '../../odata/index.ts'
import { decodeRecordBytes, FLAT_TYPE, locationOf, readPreferences } from '../../v2/index.ts'
import { countRecords, readRecords, type RecordFace } from '../attendance/read-records.ts'
import { historyViews } from '../attendance/reference-sets.ts'
import { rowById } from '../attendance/rows.ts'
import {
  jsonMediaType,
  jsonReply,
  methodNotAllowed,
  notFound,
  refuseDomain,
  type Reply,
} from '../http/reply.ts'
import { contextRoot, type RoutedRequest } from '../http/request.ts'
import type { Describe } from '../query/presentation.ts'
import { keyValues, readEntity, readResource, type Resource } from '../query/read-entity.ts'
import type { School } from '../school.ts'
import type { OnExisting } from '../store/marks.ts'
import { toLegacyForm } from './legacy-form.ts'
import { answerBatch, toFlatReply, type UnmappedPolicy, writeFlat } from './write-flat.ts'

/** At the full level a flat record has its type and no more, as the replies to its writes do. */
const describe: Describe = (_type, _entity, shown) => ({
  members: { '@odata.type': FLAT_TYPE, ...shown },
  url: '',
})

/** Switches of the legacy face. */
export interface LegacySwitches {
  readonly onExisting: OnExisting
  readonly unmappedFields: UnmappedPolicy
  readonly pageSize: number
  /** Longest range of a read. */
  readonly maxDays: number
}

/** Creates the obsolete attendance face (service.md 4.2, 9): the batch write, single records, and reads of recorded marks. */
export function createLegacyService(
  school: School,
  { onExisting, unmappedFields, pageSize, maxDays }: LegacySwitches,
): (request: RoutedRequest) => Reply {
  const index = createModelIndex(attendanceV2Model)
  const typeName = 'AttendanceService.Models.OData.AttendanceRecord'
  const face = (asOf: number | undefined): RecordFace => ({
    ...{ name: 'V2', typeName, maxDays, recordedOnly: true, describe },
    queryContext: { index, now: school.now(), pageSize },
    toEntity: (row) => ({
      ...toFlatReply(row.view),
      // Most filters never ask for it, and it costs a query.
      get AttendanceHistorys() {
        return historyViews(school, row.view, asOf).map((view) => ({ ...toFlatReply(view) }))
      },
    }),
  })

  const post = (isBatch: boolean, request: RoutedRequest): Reply => {
    const context = `${contextRoot(request)}/$metadata#AttendanceRecords/$entity`
    const recordsUrl = `${request.origin}${request.route.root}/AttendanceRecords`
    const { actorId } = request.principal
    const writer = { school, onExisting, unmappedFields, actorId, context, recordsUrl }
    if (isBatch) return answerBatch(writer, request)
    const prefers = readPreferences(request.header('prefer') ?? '', request.header('accept') ?? '')
    const record = decodeRecordBytes(request.body, request.header('content-type'))
    const { status, json } = writeFlat(writer, record, prefers.metadata)
    if (status !== 201) return jsonReply(status, json)
    if (prefers.prefersMinimal) return { status: 204, headers: { 'OData-Version': '4.0' }, body: '' }
    const location = locationOf({ status, json }, recordsUrl) ?? recordsUrl
    return jsonReply(status, json, { 'Content-Type': jsonMediaType(prefers.metadata), Location: location })
  }

  const keyed = (resource: Resource, request: RoutedRequest): Reply => {
    if (request.method !== 'GET') return methodNotAllowed('GET')
    const [id] = keyValues(resource.key ?? [], ['ExternalID']) ?? []
    const row = id === undefined ? undefined : rowById(school, id, { face: 'V2', asOf: request.asOf })
    if (row?.seq === undefined) return notFound
    const { toEntity, queryContext } = face(request.asOf)
    const target = { ...resource, typeName, context: 'AttendanceRecords', entity: toEntity(row), describe }
    return readEntity(target, queryContext, request)
  }

  const answer = (request: RoutedRequest): Reply => {
    const { method, route, principal, asOf } = request
    const refusal = refuseDomain(principal, 'Attendance')
    if (refusal !== undefined) return refusal
    if (route.resource.length === 1 && route.resource[0]?.toLowerCase() === '$batch')
      return method === 'POST' ? post(true, request) : methodNotAllowed('POST')
    const resource = readResource(route.resource)
    if (resource?.set.toLowerCase() !== 'attendancerecords') return notFound
    if (resource.key !== undefined) return keyed(resource, request)
    const [next, ...beyond] = resource.rest
    if (beyond.length > 0 || resource.isRaw || (next !== undefined && next.kind !== '$count')) return notFound
    if (next !== undefined)
      return method === 'GET' ? countRecords(school, face(asOf), request) : methodNotAllowed('GET')
    if (method === 'POST') return post(false, request)
    if (method !== 'GET') return methodNotAllowed('GET', 'POST')
    return readRecords(school, face(asOf), request)
  }
  return (request) => {
    const reply = answer(request)
    return request.method === 'GET' ? toLegacyForm(reply, school.legacyForm.current()) : reply
  }
}
