import { attendanceV2Model } from '../../model/attendance-v2.ts'
import { createModelIndex } from '../../odata/index.ts'
import { decodeRecordBytes, locationOf, readPreferences } from '../../v2/index.ts'
import { type RecordFace, recordSet } from '../attendance/record-set.ts'
import { historyViews } from '../attendance/reference-sets.ts'
import {
  jsonMediaType,
  jsonReply,
  methodNotAllowed,
  notFound,
  refuseDomain,
  type Reply,
} from '../http/reply.ts'
import { contextRoot, type RoutedRequest } from '../http/request.ts'
import { answerSet, readResource } from '../query/serve-set.ts'
import type { School } from '../school.ts'
import { toLegacyForm } from './legacy-form.ts'
import { answerBatch, type FlatWriter, toFlatReply, writeFlat } from './write-flat.ts'

/** Creates the obsolete attendance face (service.md 4.2, 9): the batch write, single records, and reads of recorded marks. */
export function createLegacyService(school: School): (request: RoutedRequest) => Reply {
  const index = createModelIndex(attendanceV2Model)
  const face = (asOf: number | undefined): RecordFace => ({
    ...{ name: 'V2', typeName: 'AttendanceService.Models.OData.AttendanceRecord' },
    toEntity: (row) => ({
      ...toFlatReply(row.view),
      // Most filters never ask for it, and it costs a query.
      get AttendanceHistorys() {
        return historyViews(school, row, asOf).map((view) => ({ ...toFlatReply(view) }))
      },
    }),
    post: (request) => postRecord(school, request),
  })
  const answer = (request: RoutedRequest): Reply => {
    const { method, route, principal, asOf } = request
    const refusal = refuseDomain(principal, 'Attendance')
    if (refusal !== undefined) return refusal
    if (route.resource.length === 1 && route.resource[0]?.toLowerCase() === '$batch')
      return method === 'POST' ? answerBatch(writerOf(school, request), request) : methodNotAllowed('POST')
    const resource = readResource(route.resource)
    if (resource?.set.toLowerCase() !== 'attendancerecords') return notFound
    const queryContext = { index, now: school.now(), pageSize: school.settings.pageSize }
    return answerSet(recordSet(school, face(asOf), asOf), resource, queryContext, request)
  }
  return (request) => {
    const reply = answer(request)
    return request.method === 'GET' ? toLegacyForm(reply, school.legacyForm.current()) : reply
  }
}

const writerOf = (school: School, request: RoutedRequest): FlatWriter => ({
  school,
  actorId: request.principal.actorId,
  context: `${contextRoot(request)}/$metadata#AttendanceRecords/$entity`,
  recordsUrl: `${request.origin}${request.route.root}/AttendanceRecords`,
})

/** Answers a POST of one record. */
function postRecord(school: School, request: RoutedRequest): Reply {
  const writer = writerOf(school, request)
  const prefers = readPreferences(request.header('prefer') ?? '', request.header('accept') ?? '')
  const record = decodeRecordBytes(request.body, request.header('content-type'))
  const { status, json } = writeFlat(writer, record, prefers.metadata)
  if (status !== 201) return jsonReply(status, json)
  if (prefers.prefersMinimal) return { status: 204, headers: { 'OData-Version': '4.0' }, body: '' }
  const Location = locationOf({ status, json }, writer.recordsUrl) ?? writer.recordsUrl
  return jsonReply(status, json, { 'Content-Type': jsonMediaType(prefers.metadata), Location })
}
