import { randomUUID } from 'node:crypto'

import { attendanceV2Model } from '../../model/attendance.ts'
import { createModelIndex } from '../../odata/index.ts'
import {
  type BatchPart,
  createBatchEncoder,
  decodeBatch,
  decodeRecordBytes,
  encodeErrorArray,
  encodeFlatReply,
  encodeMismatch,
  envelopRecord,
  type FlatReply,
  locationOf,
  type MetadataLevel,
  type PartReply,
  readPreferences,
  type RecordFault,
  type V2Error,
} from '../../v2/index.ts'
import type { RecordView } from '../attendance/record.ts'
import { historyViews, type RecordFace, recordSet } from '../attendance/sets.ts'
import { writeMark } from '../attendance/write-mark.ts'
import { formatInstant } from '../dates.ts'
import {
  jsonMediaType,
  jsonReply,
  methodNotAllowed,
  notFound,
  refuseDomain,
  type Reply,
} from '../http/reply.ts'
import { contextRoot, type RoutedRequest, type ServiceRequest } from '../http/request.ts'
import { zeroGuid } from '../identity.ts'
import { answerSet, readResource } from '../query/serve-set.ts'
import type { School } from '../school.ts'
import { transact } from '../store/database.ts'
import { layoutFor, toLegacyForm } from './legacy-form.ts'

/** Creates the obsolete attendance interface (service.md 4.2, 9): batches, writes of single records, and reads of recorded marks. */
export function createLegacyService(school: School): (request: RoutedRequest) => Reply {
  const index = createModelIndex(attendanceV2Model)
  const face = (asOf: number | undefined): RecordFace => ({
    ...{ name: 'V2', typeName: 'AttendanceService.Models.OData.AttendanceRecord' },
    toEntity: (row) => ({
      ...toFlatReply(row.view),
      // The history is a getter, because computing the history takes a query and most filters do not read it.
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

interface FlatWriter {
  readonly school: School
  readonly actorId: string
  readonly context: string
  /** The URL of the set of records, with which the `Location` header begins. */
  readonly recordsUrl: string
}

/** The assumed error codes for errors of the decoder. Service.md 7 shows only `ATT_VAL_2` and `ATT_VAL_3`. */
const faultCodes: Readonly<Record<RecordFault['code'], string>> = {
  ADP_JSON: 'INVALID_JSON',
  ADP_CHARSET: 'INVALID_CHARSET',
  ADP_FIELD: 'INVALID_FIELD',
  ADP_UNMAPPED_FIELD: 'UNKNOWN_FIELD',
  ADP_METHOD: 'METHOD_NOT_ALLOWED',
  ADP_RECORD_LIMIT: 'RECORD_TOO_LARGE',
}

const unknownIds: Readonly<Record<string, string>> = {
  ATT_VAL_1: 'The Learner of the record does not exist.',
  ATT_VAL_2: 'The AttendableEvent of the record does not exist.',
  ATT_VAL_3: 'The SchoolAttendanceCode of the record does not exist.',
}

/**
 * Writes one flat record. Returns a status and JSON on one line: the stored record, or the array of all errors of the record (service.md
 * 7). Ignores members that are not part of the write form.
 */
function writeFlat(
  writer: FlatWriter,
  { record, faults = [] }: Pick<BatchPart, 'record' | 'faults'>,
  metadata: MetadataLevel,
): { readonly status: number; readonly json: string } {
  const { school } = writer
  const { dataEnvelope, errorMessages } = school.legacyForm.current()
  const refuse = (status: number, errors: readonly V2Error[]) => {
    const worded = errors.map((error) => ({ ...error, message: errorMessages[error.code] ?? error.message }))
    // All errors of a record share one SequenceID. The value of the SequenceID has no meaning, so it is computed from the seed.
    return { status, json: encodeErrorArray(worded, school.ids.guid('sequence', school.marks.lastSeq() + 1)) }
  }
  if (record === undefined) {
    const status = faults.some(({ code }) => code === 'ADP_METHOD') ? 405 : 400
    return refuse(
      status,
      faults.map(({ code, message }) => ({ code: faultCodes[code], message })),
    )
  }
  if (record.Present && record.Absent)
    return refuse(400, [
      {
        code: 'INVALID_FIELD',
        message: 'A mark cannot be both Present and Absent. Nothing was stored. Set one of them to false.',
      },
    ])
  const outcome = writeMark(school, 'V2', {
    externalId: zeroGuid,
    learner: record.Learner.toLowerCase(),
    event: record.AttendableEvent.toLowerCase(),
    code: record.SchoolAttendanceCode.toLowerCase(),
    present: record.Present,
    absent: record.Absent,
    minutesLate: record.MinutesLate ?? null,
    comment: record.Comment ?? null,
    recordedOn: undefined,
    changeProcessName: null,
    recordedBy: writer.actorId,
  })
  if (outcome.kind === 'written') {
    const json = encodeFlatReply(toFlatReply(outcome.view), writer.context, metadata)
    return { status: 201, json: dataEnvelope ? envelopRecord(json) : json }
  }
  if (outcome.kind === 'conflict') return refuse(409, [{ code: 'CONFLICT', message: outcome.message }])
  return refuse(
    400,
    outcome.faults.map(({ code, message }) => ({ code, message: unknownIds[code] ?? message })),
  )
}

function toFlatReply(view: RecordView): FlatReply {
  return {
    ExternalID: view.externalId,
    Present: view.present,
    Absent: view.absent,
    RecordedOn: view.recordedOn === null ? null : formatInstant(view.recordedOn),
    ChangeProcessName: view.changeProcessName,
    AttendableEventStart: view.start,
    RecordedBy: view.recordedBy,
    Learner: view.learner,
    AttendableEvent: view.event,
    SchoolAttendanceCode: view.code,
    MinutesLate: view.minutesLate,
    Comment: view.comment,
  }
}

/**
 * Answers the V2 `$batch` (service.md 4.2) with one part for each record in order, even if other records fail. If the ids in the header and
 * the body differ, the reply is a single 200 without outcomes. The records of this batch are applied unless the setting `mismatch` is
 * `drop`. Throws `AdapterError` for a malformed envelope before any record is applied.
 */
function answerBatch(writer: FlatWriter, request: ServiceRequest): Reply {
  const batch = decodeBatch(request.body, request.header('content-type'))
  const form = writer.school.legacyForm.current()
  if (!batch.idsAgree && form.mismatch === 'drop') return answerMismatch()
  // All records share one transaction, which is faster. The records stay independent, because writing a record never throws.
  const parts = transact(writer.school.database, () =>
    batch.parts.map((part): PartReply => {
      const { status, json } = writeFlat(writer, part, part.metadata)
      const minimal = status === 201 && part.prefersMinimal
      return { ...part, status: minimal ? 204 : status, json: minimal ? undefined : json }
    }),
  )
  if (!batch.idsAgree) return answerMismatch()
  const layout = layoutFor(form, request)
  const recordsUrl = layout === 'nested' ? writer.recordsUrl : undefined
  const encoder = createBatchEncoder(layout, randomUUID, form.msgtypeResponse, recordsUrl)
  const body = parts.map((part) => encoder.part(part)).join('') + encoder.close(batch.changesets.length)
  return { status: 200, headers: { 'Content-Type': encoder.contentType }, body }
}

function answerMismatch(): Reply {
  const { contentType, body } = encodeMismatch(randomUUID)
  return { status: 200, headers: { 'Content-Type': contentType }, body }
}
