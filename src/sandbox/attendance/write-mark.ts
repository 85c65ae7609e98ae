import type { ErrorDetail } from '../../errors.ts'
import { serviceNamespace } from '../../model/notation.ts'
import type { ModelIndex } from '../../odata/index.ts'
import { odataError, type Reply } from '../http/reply.ts'
import { storeValues } from '../control/stored-values.ts'
import type { RoutedRequest } from '../http/request.ts'
import { parseRelaxedJson } from '../json.ts'
import { entityReply, presentationOf } from '../query/presentation.ts'
import type { School } from '../school.ts'
import type { Face } from '../store/mark.ts'
import type { OnExisting } from '../store/marks.ts'
import { readRecordBody, type RecordView, toRecordEntity } from './record.ts'

/** A mark as posted to either face; ids in lower case. */
interface MarkWrite {
  readonly externalId: string
  readonly learner: string
  readonly event: string
  readonly code: string
  /** Undefined: as the code says. */
  readonly present: boolean | undefined
  readonly absent: boolean | undefined
  readonly minutesLate: number | null
  readonly comment: string | null
  /** Milliseconds; undefined: now. */
  readonly recordedOn: number | undefined
  readonly changeProcessName: string | null
  readonly recordedBy: string
}

/** The mark as the reply shows it, the ids that do not exist, or a conflict with an existing mark. */
type MarkOutcome =
  | { readonly kind: 'written'; readonly view: RecordView }
  | { readonly kind: 'unknownIds'; readonly faults: readonly ErrorDetail[] }
  | { readonly kind: 'conflict'; readonly message: string }

/** Codes of ids that do not exist. The first is this sandbox's own by analogy; service.md 7 shows the others. */
const validationCodes = { learner: 'ATT_VAL_1', event: 'ATT_VAL_2', code: 'ATT_VAL_3' } as const

const conflicts = {
  marked: 'The session of this learner is already marked.',
  idTaken: 'The ExternalID belongs to the mark of another session.',
}

/** Checks the three ids of a mark, all of them, and records it. */
export function writeMark(school: School, face: Face, onExisting: OnExisting, write: MarkWrite): MarkOutcome {
  const learner = school.roster.byId(write.learner)
  const session = school.calendar.byId(write.event)
  const code = school.codes.byId(write.code)
  if (learner === undefined || session === undefined || code === undefined) {
    const faults: ErrorDetail[] = []
    const missing = (of: keyof typeof validationCodes, field: string): void => {
      const message = `The ${field} with this ExternalID does not exist.`
      faults.push({ code: validationCodes[of], target: `${field}/ExternalID`, message })
    }
    if (learner === undefined) missing('learner', 'Attendee')
    if (session === undefined) missing('event', 'Event')
    if (code === undefined) missing('code', 'AttendanceCode')
    return { kind: 'unknownIds', faults }
  }
  const present = write.present ?? (write.absent === true ? false : code.category === 'present')
  const absent = write.absent ?? (write.present === true ? false : code.category === 'absent')
  const writtenAt = school.now()
  const { externalId, changeProcessName } = write
  const { stored, echoed } = storeValues(school.valueRules.current(), write, writtenAt)
  const mark = { externalId, changeProcessName, present, absent }
  const numbers = {
    learner: learner.number,
    session: session.number,
    code: code.number,
    actor: school.actors.number(write.recordedBy),
  }
  const result = school.marks.write(
    { ...mark, ...stored, ...numbers, writtenAt, posted: write },
    face,
    onExisting,
  )
  if (result.outcome === 'conflict') return { kind: 'conflict', message: conflicts[result.reason] }
  return {
    kind: 'written',
    view: {
      ...mark,
      ...echoed,
      externalId: result.externalId,
      start: session.startText,
      recordedBy: write.recordedBy,
      learner: learner.externalId,
      event: session.externalId,
      code: code.externalId,
    },
  }
}

/**
 * Answers `POST …/Attendance/V3/AttendanceRecords` (service.md 4): 201 with the record as recorded, 204 where the client
 * prefers no body, 400 with every fault at once, 409 where the session may not be marked again.
 */
export function postRecord(
  school: School,
  onExisting: OnExisting,
  index: ModelIndex,
  request: RoutedRequest,
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
  const root = `${request.origin}${request.route.root}`
  const location = `${root}/AttendanceRecords(${outcome.view.externalId})`
  // RFC 7240 4.2; OData protocol 8.2.8.7
  if (/(^|[ ,;])return=minimal([ ,;]|$)/i.test(request.header('prefer') ?? '')) {
    const headers = { Location: location, 'OData-EntityId': location, 'Preference-Applied': 'return=minimal' }
    return { status: 204, headers: { ...headers, 'OData-Version': '4.0' }, body: '' }
  }
  const types = { attendee: record.attendee.type, event: record.event.type, code: record.code.type }
  const entity = { ...toRecordEntity(outcome.view, types), fabricated: null }
  const presentation = presentationOf({}, request, index)
  const type = index.structured(`${serviceNamespace}.AttendanceRecord`)
  const described = presentation.describe?.(type, entity, entity, '').members ?? entity
  const reply = entityReply(201, presentation, 'AttendanceRecords/$entity', described)
  return { ...reply, headers: { ...reply.headers, Location: location } }
}
