import { serviceNamespace } from '../../model/notation.ts'
import type { ModelIndex } from '../../odata/index.ts'
import { odataError } from '../edge/reply.ts'
import type { Reply } from '../edge/reply.ts'
import type { Route, ServiceRequest } from '../edge/request.ts'
import { entityReply } from '../query/collection.ts'
import { presentationOf } from '../query/presentation.ts'
import type { School } from '../school.ts'
import type { OnExisting } from '../store/marks.ts'
import { readRecordBody } from './read-record-body.ts'
import { toRecordEntity } from './record-entity.ts'
import { parseRelaxedJson } from './relaxed-json.ts'
import { writeMark } from './write-mark.ts'

/**
 * Answers `POST …/Attendance/V3/AttendanceRecords` (service.md 4): 201 with the record as recorded, 204 where the client
 * prefers no body, 400 with every fault at once, 409 where the session may not be marked again.
 */
export function postRecord(
  school: School,
  onExisting: OnExisting,
  index: ModelIndex,
  route: Route,
  request: ServiceRequest,
): Reply {
  const contentType = request.header('content-type') ?? ''
  if (!/^application\/json *(;|$)/i.test(contentType))
    return odataError(415, 'UnsupportedMediaType', 'Content-Type must be application/json.')
  const value = parseRelaxedJson(request.body.toString('utf8'))
  if (value === undefined) return odataError(400, 'InvalidBody', 'The body is not valid JSON.')
  const reading = readRecordBody(value)
  if ('faults' in reading)
    return odataError(400, 'InvalidBody', 'The body is not an AttendanceRecord.', reading.faults)
  const { record } = reading
  const outcome = writeMark(school, 'V3', onExisting, {
    ...record,
    learner: record.attendee.externalId,
    event: record.event.externalId,
    code: record.code.externalId,
    recordedBy: record.recordedBy?.externalId ?? request.principal.actorId,
  })
  if (outcome.kind === 'unknownIds')
    return odataError(400, 'ValidationFailed', 'The record names entities that do not exist.', outcome.faults)
  if (outcome.kind === 'conflict') return odataError(409, 'Conflict', outcome.message)
  const root = `${request.origin}${route.root}`
  const location = `${root}/AttendanceRecords(${outcome.view.externalId})`
  // RFC 7240 4.2; OData protocol 8.2.8.7
  if (/(^|[ ,;])return=minimal([ ,;]|$)/i.test(request.header('prefer') ?? '')) {
    const headers = { Location: location, 'OData-EntityId': location, 'Preference-Applied': 'return=minimal' }
    return { status: 204, headers: { ...headers, 'OData-Version': '4.0' }, body: '' }
  }
  const types = { attendee: record.attendee.type, event: record.event.type, code: record.code.type }
  const entity = { ...toRecordEntity(outcome.view, types), fabricated: null }
  const presentation = presentationOf({}, route, request, index)
  const type = index.structured(`${serviceNamespace}.AttendanceRecord`)
  const described = presentation.describe?.(type, entity, entity, '').members ?? entity
  const reply = entityReply(201, presentation, 'AttendanceRecords/$entity', described)
  return { ...reply, headers: { ...reply.headers, Location: location } }
}
