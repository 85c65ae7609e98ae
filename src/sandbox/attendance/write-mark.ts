import type { ErrorDetail } from '../../errors.ts'
import { serviceNamespace } from '../../model/notation.ts'
import { odataError, type Reply } from '../http/reply.ts'
import { storeValues } from '../control/stored-values.ts'
import type { RoutedRequest } from '../http/request.ts'
import { parseRelaxedJson } from '../json.ts'
import { entityReply, presentationOf } from '../query/presentation.ts'
import type { School } from '../school.ts'
import type { Face } from '../store/marks.ts'
import { type MarkWrite, readRecordBody, type RecordView, toRecordEntity } from './record.ts'
import { recordedRow } from './rows.ts'

type MarkOutcome =
  | { readonly kind: 'written'; readonly view: RecordView }
  | { readonly kind: 'unknownIds'; readonly faults: readonly ErrorDetail[] }
  | { readonly kind: 'conflict'; readonly message: string }

const conflicts = {
  marked:
    'This learner already has a mark for the session. Nothing was stored. Read the existing mark first.',
  idTaken:
    'The ExternalID belongs to the mark of another learner or session. Nothing was stored. Send another ExternalID.',
}

/** Writes a mark after a check of its three ids. Reports all invalid ids together. */
export function writeMark(school: School, face: Face, write: MarkWrite): MarkOutcome {
  const learner = school.roster.byId(write.learner)
  const session = school.calendar.byId(write.event)
  const code = school.codes.byId(write.code)
  if (learner === undefined || session === undefined || code === undefined) {
    // Service.md 7 shows `ATT_VAL_2` and `ATT_VAL_3`. `ATT_VAL_1` is assumed by analogy.
    const fields = [
      [learner, 'ATT_VAL_1', 'Attendee'],
      [session, 'ATT_VAL_2', 'Event'],
      [code, 'ATT_VAL_3', 'AttendanceCode'],
    ] as const
    const missing = fields.filter(([found]) => found === undefined)
    const faults = missing.map(([, fault, field]) => ({
      ...{ code: fault, target: `${field}/ExternalID` },
      message: `The ${field} with this ExternalID does not exist.`,
    }))
    return { kind: 'unknownIds', faults }
  }
  const writtenAt = school.now()
  const { stored, echoed } = storeValues(school.valueRules.current(), write, writtenAt)
  const written = school.marks.write(
    {
      ...{ learner: learner.number, session: session.number, code: code.number },
      actor: school.actors.number(write.recordedBy),
      present: write.present ?? (write.absent === true ? false : code.category === 'present'),
      absent: write.absent ?? (write.present === true ? false : code.category === 'absent'),
      changeProcessName: write.changeProcessName,
      ...stored,
    },
    { externalId: write.externalId, face, writtenAt, posted: write, onExisting: school.settings.onExisting },
  )
  if ('conflict' in written) return { kind: 'conflict', message: conflicts[written.conflict] }
  return { kind: 'written', view: recordedRow(school, learner, session, { ...written.mark, ...echoed }).view }
}

/**
 * Answers `POST …/Attendance/V3/AttendanceRecords` (service.md 4). The status is 201 with the stored record, 204 if the client prefers no
 * body, 400 with all errors, or 409 if the session may not get another mark.
 */
export function postRecord(school: School, request: RoutedRequest): Reply {
  const contentType = request.header('content-type') ?? ''
  if (!/^application\/json *(;|$)/i.test(contentType))
    return odataError(
      415,
      'UnsupportedMediaType',
      'The Content-Type is not application/json. Nothing was stored. Send the record as JSON.',
    )
  const value = parseRelaxedJson(request.body.toString('utf8'))
  if (value === undefined)
    return odataError(
      400,
      'InvalidBody',
      'The body is not valid JSON. Nothing was stored. Send one JSON object.',
    )
  const reading = readRecordBody(value, request.principal.actorId)
  if ('faults' in reading)
    return odataError(
      400,
      'InvalidBody',
      'The body is not an AttendanceRecord. Nothing was stored. Correct the listed members.',
      reading.faults,
    )
  const outcome = writeMark(school, 'V3', reading.write)
  if (outcome.kind === 'unknownIds')
    return odataError(
      400,
      'ValidationFailed',
      'The record names entities that do not exist. Nothing was stored. Correct the listed ids.',
      outcome.faults,
    )
  if (outcome.kind === 'conflict') return odataError(409, 'Conflict', outcome.message)
  const root = `${request.origin}${request.route.root}`
  const location = `${root}/AttendanceRecords(${outcome.view.externalId})`
  // Omits the body if the client prefers no body (RFC 7240 4.2; OData protocol 8.2.8.7).
  if (/(^|[ ,;])return=minimal([ ,;]|$)/i.test(request.header('prefer') ?? '')) {
    const headers = { Location: location, 'OData-EntityId': location, 'Preference-Applied': 'return=minimal' }
    return { status: 204, headers: { ...headers, 'OData-Version': '4.0' }, body: '' }
  }
  const presentation = presentationOf({}, request)
  const reply = entityReply(201, presentation, 'AttendanceRecords/$entity', {
    ...(presentation.level === 'full' ? { '@odata.type': `#${serviceNamespace}.AttendanceRecord` } : {}),
    ...toRecordEntity(outcome.view, reading.types),
    fabricated: null,
  })
  return { ...reply, headers: { ...reply.headers, Location: location } }
}
