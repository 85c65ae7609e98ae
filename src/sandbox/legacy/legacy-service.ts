import { attendanceV2Model } from '../../model/attendance-v2.ts'
import { createModelIndex } from '../../odata/index.ts'
import { decodeRecordBytes, FLAT_TYPE, locationOf, readPreferences } from '../../v2/index.ts'
import { rowById } from '../attendance/augmented-rows.ts'
import type { AttendanceSwitches } from '../attendance/attendance-service.ts'
import { countRecords, readRecords } from '../attendance/read-records.ts'
import type { RecordFace } from '../attendance/read-records.ts'
import { historyViews } from '../attendance/reference-sets.ts'
import { methodNotAllowed, notFound, refuseDomain } from '../edge/refusals.ts'
import { jsonMediaType, jsonReply } from '../edge/reply.ts'
import type { Reply } from '../edge/reply.ts'
import { contextRoot } from '../edge/request.ts'
import type { Route, ServiceRequest } from '../edge/request.ts'
import type { Describe } from '../query/describe-entity.ts'
import { readEntity } from '../query/read-entity.ts'
import { keyValues, readResource } from '../query/resource.ts'
import type { Resource } from '../query/resource.ts'
import type { School } from '../school.ts'
import { answerBatch } from './answer-batch.ts'
import { toFlatReply } from './flat-entity.ts'
import { toLegacyForm } from './legacy-form.ts'
import type { UnmappedPolicy } from './unmapped-fields.ts'
import { writeFlat } from './write-flat.ts'

/** At the full level a flat record has its type and no more, as the replies to its writes do. */
const describe: Describe = (_type, _entity, shown) => ({
  members: { '@odata.type': FLAT_TYPE, ...shown },
  url: '',
})

/** Switches of the legacy face. */
export interface LegacySwitches extends AttendanceSwitches {
  readonly unmappedFields: UnmappedPolicy
}

/** Creates the obsolete attendance face (service.md 4.2, 9): the batch write, single records, and reads of recorded marks. */
export function createLegacyService(
  school: School,
  switches: LegacySwitches,
): (route: Route, request: ServiceRequest) => Reply {
  const index = createModelIndex(attendanceV2Model)
  const typeName = 'AttendanceService.Models.OData.AttendanceRecord'
  const face = (asOf: number | undefined): RecordFace => ({
    name: 'V2',
    typeName,
    queryContext: { index, now: school.now() },
    toEntity: (row) => ({
      ...toFlatReply(row.view),
      // Most filters never ask for it, and it costs a query.
      get AttendanceHistorys() {
        return historyViews(school, row.view, asOf).map((view) => ({ ...toFlatReply(view) }))
      },
    }),
    recordedOnly: true,
    describe,
  })

  const post = (route: Route, request: ServiceRequest): Reply => {
    const { onExisting, unmappedFields } = switches
    const context = `${contextRoot(route, request)}/$metadata#AttendanceRecords/$entity`
    const recordsUrl = `${request.origin}${route.root}/AttendanceRecords`
    const { actorId } = request.principal
    const writer = { school, onExisting, unmappedFields, actorId, context, recordsUrl }
    if (route.resource[0]?.toLowerCase() === '$batch') return answerBatch(writer, request)
    const prefers = readPreferences(request.header('prefer') ?? '', request.header('accept') ?? '')
    const { status, json } = writeFlat(
      writer,
      decodeRecordBytes(request.body, request.header('content-type')),
      prefers.metadata,
    )
    if (status !== 201) return jsonReply(status, json)
    if (prefers.prefersMinimal) return { status: 204, headers: { 'OData-Version': '4.0' }, body: '' }
    const location = locationOf({ status, json }, recordsUrl) ?? recordsUrl
    return jsonReply(status, json, { 'Content-Type': jsonMediaType(prefers.metadata), Location: location })
  }

  const keyed = (resource: Resource, route: Route, request: ServiceRequest): Reply => {
    if (request.method !== 'GET') return methodNotAllowed('GET')
    const [id] = keyValues(resource.key ?? [], ['ExternalID']) ?? []
    const row = id === undefined ? undefined : rowById(school, id, { face: 'V2', asOf: request.asOf })
    if (row?.seq === undefined) return notFound
    const { toEntity, queryContext } = face(request.asOf)
    const entity = toEntity(row)
    const shown = row.form?.(entity) ?? entity
    const about = { typeName, context: 'AttendanceRecords', entity: shown, describe }
    return readEntity({ ...resource, ...about }, queryContext, switches.pageSize, route, request)
  }

  const answer = (route: Route, request: ServiceRequest): Reply => {
    const refusal = refuseDomain(request.principal, 'Attendance')
    if (refusal !== undefined) return refusal
    const isBatch = route.resource.length === 1 && route.resource[0]?.toLowerCase() === '$batch'
    if (isBatch) return request.method === 'POST' ? post(route, request) : methodNotAllowed('POST')
    const resource = readResource(route.resource)
    if (resource?.set.toLowerCase() !== 'attendancerecords') return notFound
    if (resource.key !== undefined) return keyed(resource, route, request)
    const [next, ...beyond] = resource.rest
    if (beyond.length > 0 || resource.isRaw || (next !== undefined && next.kind !== '$count')) return notFound
    if (next !== undefined)
      return request.method === 'GET'
        ? countRecords(school, face(request.asOf), switches, route, request)
        : methodNotAllowed('GET')
    if (request.method === 'POST') return post(route, request)
    if (request.method !== 'GET') return methodNotAllowed('GET', 'POST')
    return readRecords(school, face(request.asOf), switches, route, request)
  }
  return (route, request) => {
    const reply = answer(route, request)
    return request.method === 'GET' ? toLegacyForm(reply, school.legacyForm.current()) : reply
  }
}
