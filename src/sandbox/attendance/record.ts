import type { ErrorDetail } from '../../errors.ts'
import { formatInstant } from '../dates.ts'
import { zeroGuid } from '../identity.ts'
import { FieldReader, isMembers, type Json, type Members } from '../json.ts'

/** The content of one AttendanceRecord (service.md 2.10). */
export interface RecordView {
  readonly externalId: string
  readonly present: boolean
  readonly absent: boolean
  /** Milliseconds; null for a session without a mark. */
  readonly recordedOn: number | null
  readonly changeProcessName: string | null
  /** Start of the session as the service writes it. */
  readonly start: string
  /** Null when the system made the row. */
  readonly recordedBy: string | null
  readonly learner: string
  readonly event: string
  readonly code: string
  readonly minutesLate: number | null
  readonly comment: string | null
}

/** Types that a posted reference may name, the documented one first (service.md 2.10; service-facts 5). */
const referenceTypes = {
  Attendee: ['Learner.Identifier'],
  Event: ['Attendance.AttendanceSession', 'Attendance.StatutoryAttendanceSession'],
  AttendanceCode: ['Attendance.Lookup', 'Attendance.Lookup.AttendanceCode'],
  RecordedBy: ['AuthorisedUser'],
} as const

/** Type texts of the references of a record. */
export interface RecordTypes {
  readonly attendee: string
  readonly event: string
  readonly code: string
}

/** The two sets of type texts that the service was seen to use: as documented, and as in a later sample (service-facts 5). */
export const recordTypes: Readonly<Record<'documented' | 'later', RecordTypes>> = {
  documented: {
    attendee: referenceTypes.Attendee[0],
    event: referenceTypes.Event[0],
    code: referenceTypes.AttendanceCode[0],
  },
  later: {
    attendee: referenceTypes.Attendee[0],
    event: referenceTypes.Event[1],
    code: referenceTypes.AttendanceCode[1],
  },
}

/** The record as the service shows it, fields in the order of service.md 2.10. */
export function toRecordEntity(view: RecordView, types: RecordTypes): Record<string, Json> {
  const by = view.recordedBy
  return {
    ExternalID: view.externalId,
    Present: view.present,
    Absent: view.absent,
    RecordedOn: view.recordedOn === null ? null : formatInstant(view.recordedOn),
    ChangeProcessName: view.changeProcessName,
    AttendableEventStart: view.start,
    RecordedBy: by === null ? null : { ExternalID: by, Type: referenceTypes.RecordedBy[0] },
    Attendee: { ExternalID: view.learner, Type: types.attendee },
    Event: { ExternalID: view.event, Type: types.event },
    AttendanceCode: { ExternalID: view.code, Type: types.code },
    Qualifier: { MinutesLate: view.minutesLate, Comment: view.comment },
  }
}

/** A pointer to another entity as posted; the id in lower case. */
interface PostedReference {
  readonly externalId: string
  readonly type: string
}

/** A well-formed record as posted, in the full or the minimal form (service-facts 6). */
interface PostedRecord {
  readonly externalId: string
  /** Undefined where the body leaves them to the code. */
  readonly present: boolean | undefined
  readonly absent: boolean | undefined
  /** Milliseconds; undefined: now. */
  readonly recordedOn: number | undefined
  readonly changeProcessName: string | null
  readonly recordedBy: PostedReference | undefined
  readonly attendee: PostedReference
  readonly event: PostedReference
  readonly code: PostedReference
  readonly minutesLate: number | null
  readonly comment: string | null
}

/** The record, or every fault of its form. */
type RecordReading = { readonly record: PostedRecord } | { readonly faults: readonly ErrorDetail[] }

const known = new Set([
  ...[
    'ExternalID',
    'Present',
    'Absent',
    'RecordedOn',
    'ChangeProcessName',
    'AttendableEventStart',
    'RecordedBy',
  ],
  ...['Attendee', 'Event', 'AttendanceCode', 'Qualifier', 'fabricated'],
])
/** Reads one posted record (service.md 2.10). Faults name the field and never its value. */
export function readRecordBody(value: unknown): RecordReading {
  const fields = new FieldReader()
  if (!isMembers(value)) {
    fields.refuse('', 'The body must be one JSON object.')
    return { faults: fields.faults }
  }
  for (const name in value)
    if (!known.has(name) && !name.includes('@'))
      fields.refuse(name, `The property '${name.slice(0, 64)}' does not exist on the type AttendanceRecord.`)
  const attendee = readReference(fields, value, 'Attendee')
  const event = readReference(fields, value, 'Event')
  const code = readReference(fields, value, 'AttendanceCode')
  const by = value['RecordedBy'] ?? undefined
  const recordedBy = by === undefined ? undefined : readReference(fields, value, 'RecordedBy')
  const qualifier = fields.optional(value, '', 'Qualifier', isMembers, 'an object') ?? {}
  const present = fields.boolean(value, '', 'Present')
  const absent = fields.boolean(value, '', 'Absent')
  if (present === true && absent === true)
    fields.refuse('Present', 'A mark cannot be both Present and Absent.')
  // Read for its form only: the session's own start counts.
  fields.instant(value, '', 'AttendableEventStart')
  const record = {
    externalId: fields.guid(value, '', 'ExternalID') ?? zeroGuid,
    present,
    absent,
    recordedOn: fields.instant(value, '', 'RecordedOn'),
    changeProcessName: fields.string(value, '', 'ChangeProcessName') ?? null,
    recordedBy,
    minutesLate: fields.int32(qualifier, 'Qualifier/', 'MinutesLate') ?? null,
    comment: fields.string(qualifier, 'Qualifier/', 'Comment') ?? null,
  }
  const { faults } = fields
  if (faults.length > 0 || attendee === undefined || event === undefined || code === undefined)
    return { faults }
  return { record: { ...record, attendee, event, code } }
}

/** A required reference: its ExternalID must be there, its Type may be missing (service-facts 6). */
function readReference(
  fields: FieldReader,
  record: Members,
  name: keyof typeof referenceTypes,
): PostedReference | undefined {
  const members = fields.optional(record, '', name, isMembers, 'an object with ExternalID and Type')
  if (members === undefined) {
    if (record[name] === undefined || record[name] === null) fields.refuse(name, `${name} is required.`)
    return undefined
  }
  const path = `${name}/`
  const externalId = fields.guid(members, path, 'ExternalID')
  const given = members['ExternalID']
  if (given === undefined || given === null)
    fields.refuse(`${path}ExternalID`, `${path}ExternalID is required.`)
  const types: readonly string[] = referenceTypes[name]
  const type = fields.string(members, path, 'Type') ?? referenceTypes[name][0]
  if (!types.includes(type)) fields.refuse(`${path}Type`, `${path}Type must be ${types.join(' or ')}.`)
  return externalId === undefined ? undefined : { externalId, type }
}
