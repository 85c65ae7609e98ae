import { isGuid } from '../odata/index.ts'
import {
  type FlatRecord,
  NOT_POSTED,
  type RecordFault,
  type UnmappedField,
} from '../v2/record/decode-record.ts'
import type { FlatReply } from '../v2/record/flat-reply.ts'
import { JsonReader } from '../v2/record/json-reader.ts'
import { type V3Record, type V3Reference, type V3Reply, ZERO_GUID } from '../v3/record.ts'

/**
 * What happens to members that the V2 write form does not have: `strict` refuses the record, `pass` forwards the members that V3 has and
 * drops the others, `report` drops all.
 */
export type UnmappedPolicy = 'strict' | 'pass' | 'report'

export interface RecordMapping {
  /** The `Type` of Event. In service.md 2.10 it is `Attendance.AttendanceSession`; other samples differ (service-facts 5). */
  readonly eventType: string
  /** The `Type` of AttendanceCode. In service.md 2.10 it is `Attendance.Lookup`; other samples differ (service-facts 5). */
  readonly codeType: string
  /** The name of the writing process, which V3 stores with the mark, or null to send none. */
  readonly changeProcessName: string | null
  readonly unmappedFields: UnmappedPolicy
}

/** The result of a translation. `faults` are the reasons why the record is refused. `unmapped` names the members that were dropped. */
type V3Translation =
  | { readonly record: V3Record; readonly faults: undefined; readonly unmapped: readonly string[] }
  | {
      readonly record: undefined
      readonly faults: readonly RecordFault[]
      readonly unmapped: readonly string[]
    }

const NONE: readonly string[] = []
/** The `Type` of Attendee (service.md 2.10). */
const ATTENDEE_TYPE = 'Learner.Identifier'

/**
 * Translates a V2 record to V3 (service.md 9, rule 3). The ExternalID is all zero, so that the service assigns an id. A missing member
 * stays missing, and null stays null. `recordedOn` is the time of receipt as ISO 8601 text in UTC with Z.
 */
export function toV3Record(flat: FlatRecord, mapping: RecordMapping, recordedOn: string): V3Translation {
  const passed: PassedFields = {}
  let unmapped = NONE
  if (flat.unmapped !== undefined) {
    const { faults, names } = applyPolicy(flat.unmapped, mapping.unmappedFields, passed)
    if (faults.length > 0) return { record: undefined, faults, unmapped: names }
    unmapped = names
  }
  const record: V3Record = {
    ExternalID: ZERO_GUID,
    Present: flat.Present,
    Absent: flat.Absent,
    RecordedOn: passed.RecordedOn ?? recordedOn,
    ChangeProcessName:
      passed.ChangeProcessName === undefined ? mapping.changeProcessName : passed.ChangeProcessName,
    AttendableEventStart: passed.AttendableEventStart,
    RecordedBy: passed.RecordedBy,
    Attendee: { ExternalID: flat.Learner, Type: ATTENDEE_TYPE },
    Event: { ExternalID: flat.AttendableEvent, Type: mapping.eventType },
    AttendanceCode: { ExternalID: flat.SchoolAttendanceCode, Type: mapping.codeType },
    Qualifier: { MinutesLate: flat.MinutesLate, Comment: flat.Comment },
  }
  return { record, faults: undefined, unmapped }
}

/** Converts a V3 record to the flat form, as the inverse of `toV3Record` for the fields of service.md 4.2. */
export function toFlatRecord(record: V3Record): FlatRecord {
  return {
    Present: record.Present,
    Absent: record.Absent,
    Learner: record.Attendee.ExternalID,
    AttendableEvent: record.Event.ExternalID,
    SchoolAttendanceCode: record.AttendanceCode.ExternalID,
    MinutesLate: record.Qualifier.MinutesLate,
    Comment: record.Qualifier.Comment,
    unmapped: undefined,
  }
}

/** Builds the flat reply from V3's reply. If the service omits a member or shows it as null, the reply has the posted value. */
export function toFlatReply(posted: V3Record, reply: V3Reply): FlatReply {
  const idOf = (name: 'Attendee' | 'Event' | 'AttendanceCode'): string =>
    shownId(posted[name], reply[name]) ?? posted[name].ExternalID
  return {
    ExternalID: reply.ExternalID,
    Present: reply.Present ?? posted.Present,
    Absent: reply.Absent ?? posted.Absent,
    RecordedOn: reply.RecordedOn ?? posted.RecordedOn ?? null,
    ChangeProcessName: reply.ChangeProcessName ?? posted.ChangeProcessName ?? null,
    AttendableEventStart: reply.AttendableEventStart ?? posted.AttendableEventStart ?? null,
    RecordedBy: shownId(posted.RecordedBy, reply.RecordedBy) ?? null,
    Learner: idOf('Attendee'),
    AttendableEvent: idOf('Event'),
    SchoolAttendanceCode: idOf('AttendanceCode'),
    MinutesLate: reply.Qualifier?.MinutesLate ?? posted.Qualifier.MinutesLate ?? null,
    Comment: reply.Qualifier?.Comment ?? posted.Qualifier.Comment ?? null,
  }
}

/** Returns the id that the service shows, or the posted id if the service shows none or the same id in another letter case. */
function shownId(posted: V3Record['RecordedBy'], reply: V3Reply['RecordedBy']): string | undefined {
  const own = posted?.ExternalID
  const shown = reply?.ExternalID ?? own
  return own !== undefined && shown?.toLowerCase() === own.toLowerCase() ? own : shown
}

/** Returns true if the reply shows no other learner and no other event than the posted record. */
export function isReplyTo(posted: V3Record, reply: V3Reply): boolean {
  const isSame = (name: 'Attendee' | 'Event'): boolean =>
    shownId(posted[name], reply[name]) === posted[name].ExternalID
  return isSame('Attendee') && isSame('Event')
}

/** Maximum number of faults for unmapped members of one record. Limits the memory that a batch of thousands of faulty records needs. */
const MAX_NAMED = 20

function applyPolicy(
  fields: readonly UnmappedField[],
  policy: UnmappedPolicy,
  passed: PassedFields,
): { faults: RecordFault[]; names: string[] } {
  const faults: RecordFault[] = []
  const names: string[] = []
  for (const field of fields) {
    if (policy === 'strict') {
      if (faults.length === MAX_NAMED) break
      faults.push({
        code: 'ADP_UNMAPPED_FIELD',
        message: `${printable(field.name)} has no place in a V3 record. ${NOT_POSTED} Omit the field.`,
      })
    } else {
      const fault = policy === 'pass' ? readPassedField(field, passed) : 'noPlace'
      if (fault === 'noPlace') names.push(field.name)
      else if (fault !== undefined) faults.push(fault)
    }
  }
  return { faults, names }
}

/** Returns the name of a member if it is a plain identifier, otherwise `A member`, so that no free text of a client is repeated. */
function printable(name: string): string {
  return /^[A-Za-z_@][\w@.]{0,63}$/.test(name) ? name : 'A member'
}

/** The members that V3 has and the V2 write form lacks (service.md 2.10). `unmappedFields: pass` forwards them. */
interface PassedFields {
  RecordedOn?: string
  AttendableEventStart?: string
  ChangeProcessName?: string | null
  RecordedBy?: V3Reference | null
}

/** The `Type` of RecordedBy (service.md 2.10). */
const USER_TYPE = 'AuthorisedUser'
const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,12})?)?(?:Z|[+-]\d\d:\d\d)$/

/** Reads a member into `passed`. Returns a fault if its value is invalid, or `noPlace` if V3 does not have the member. */
function readPassedField(field: UnmappedField, passed: PassedFields): RecordFault | 'noPlace' | undefined {
  const { name, raw } = field
  switch (name) {
    case 'RecordedOn':
    case 'AttendableEventStart': {
      const text = readText(raw)
      if (text === undefined || !DATE_TIME.test(text))
        return fault(name, 'must be a date-time with an offset')
      passed[name] = text
      return undefined
    }
    case 'ChangeProcessName': {
      const text = raw === 'null' ? null : readText(raw)
      if (text === undefined) return fault(name, 'must be a string or null')
      passed.ChangeProcessName = text
      return undefined
    }
    case 'RecordedBy': {
      const text = raw === 'null' ? null : readText(raw)
      if (text !== null && (text === undefined || !isGuid(text))) return fault(name, 'must be a guid or null')
      passed.RecordedBy = text === null ? null : { ExternalID: text, Type: USER_TYPE }
      return undefined
    }
    default:
      return 'noPlace'
  }
}

function readText(raw: string): string | undefined {
  const reader = new JsonReader(raw)
  return reader.atString() ? reader.readString() : undefined
}

function fault(name: string, rule: string): RecordFault {
  return { code: 'ADP_FIELD', message: `${name} ${rule}. ${NOT_POSTED} Correct the field.` }
}
