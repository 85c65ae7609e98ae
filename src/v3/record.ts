import { isGuid } from '../odata/index.ts'

/** The all-zero guid, which asks the service to assign an id (service.md 4, V3 POST rule 1). */
export const ZERO_GUID = '00000000-0000-0000-0000-000000000000'

/** A reference to another resource: its id and the name of its type (service.md 2.10). */
export interface V3Reference {
  readonly ExternalID: string
  readonly Type?: string | null | undefined
}

/** A nested V3 attendance record (service.md 2.10). Its JSON omits `undefined` members and has null members as null. */
export interface V3Record {
  readonly ExternalID: string
  readonly Present: boolean
  readonly Absent: boolean
  /** ISO 8601 text: the time of receipt in UTC with a trailing Z, or the time that the client sent. */
  readonly RecordedOn: string | null | undefined
  readonly ChangeProcessName: string | null | undefined
  /** ISO 8601 text. A client normally omits this member, because the service knows the start of the event. */
  readonly AttendableEventStart: string | null | undefined
  /** The user who made the mark, or null for a default mark of the system. */
  readonly RecordedBy: V3Reference | null | undefined
  readonly Attendee: V3Reference
  readonly Event: V3Reference
  readonly AttendanceCode: V3Reference
  readonly Qualifier: V3Qualifier
}

export interface V3Qualifier {
  readonly MinutesLate: number | null | undefined
  readonly Comment: string | null | undefined
}

/** A reference as the service returns it. If there is no value, the service may return an object whose members are null. */
type ReplyReference = Partial<Record<'ExternalID' | 'Type', string | null | undefined>>

/**
 * The members that the adapter reads of V3's reply to a POST. All except the id may be null (service.md 2) or missing, even if the service
 * stores a value.
 */
export interface V3Reply {
  readonly ExternalID: string
  readonly Present?: boolean | null | undefined
  readonly Absent?: boolean | null | undefined
  readonly RecordedOn?: string | null | undefined
  readonly ChangeProcessName?: string | null | undefined
  readonly AttendableEventStart?: string | null | undefined
  readonly RecordedBy?: ReplyReference | null | undefined
  readonly Attendee?: ReplyReference | null | undefined
  readonly Event?: ReplyReference | null | undefined
  readonly AttendanceCode?: ReplyReference | null | undefined
  readonly Qualifier?: Partial<V3Qualifier> | null | undefined
}

/** The members of a posted record: all of service.md 2.10 (`full`), or only the published minimum (`minimal`, service-facts 6). */
export type BodyProfile = 'full' | 'minimal'

/** Returns the JSON of a V3 POST in the service's member order. Ids are in lower case, because V3 may compare them as text. */
export function encodeRecord(record: V3Record, profile: BodyProfile): string {
  const { Qualifier } = record
  const Attendee = inLowerCase(record.Attendee)
  const Event = inLowerCase(record.Event)
  const AttendanceCode = inLowerCase(record.AttendanceCode)
  if (profile === 'minimal') return JSON.stringify({ Attendee, Event, AttendanceCode, Qualifier })
  const { ExternalID, Present, Absent, RecordedOn, ChangeProcessName, AttendableEventStart } = record
  const RecordedBy = record.RecordedBy && inLowerCase(record.RecordedBy)
  return JSON.stringify({
    ExternalID,
    Present,
    Absent,
    RecordedOn,
    ChangeProcessName,
    AttendableEventStart,
    RecordedBy,
    Attendee,
    Event,
    AttendanceCode,
    Qualifier,
  })
}

function inLowerCase({ ExternalID, Type }: V3Reference): V3Reference {
  return { ExternalID: ExternalID.toLowerCase(), Type }
}

const INT32 = 2_147_483_648

/**
 * Returns true if a value is a reply to a POST: it has an id, and no member of a wrong type. Other members may be null or missing. The
 * members are checked by hand, because a schema library takes longer than JSON.parse takes for the text.
 */
export function isV3Reply(value: unknown): value is V3Reply {
  return (
    isObject(value) &&
    isId(value['ExternalID']) &&
    value['ExternalID'] !== ZERO_GUID &&
    isBoolean(value['Present']) &&
    isBoolean(value['Absent']) &&
    isText(value['RecordedOn']) &&
    isText(value['ChangeProcessName']) &&
    isText(value['AttendableEventStart']) &&
    isReference(value['RecordedBy']) &&
    isReference(value['Attendee']) &&
    isReference(value['Event']) &&
    isReference(value['AttendanceCode']) &&
    isQualifier(value['Qualifier'])
  )
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isId(value: unknown): boolean {
  return typeof value === 'string' && isGuid(value)
}

function isBoolean(value: unknown): boolean {
  return value === undefined || value === null || typeof value === 'boolean'
}

function isText(value: unknown): boolean {
  return value === undefined || value === null || typeof value === 'string'
}

function isReference(value: unknown): boolean {
  if (value === undefined || value === null) return true
  if (!isObject(value) || !isText(value['Type'])) return false
  const id = value['ExternalID']
  return id === undefined || id === null || isId(id)
}

function isQualifier(value: unknown): boolean {
  if (value === undefined || value === null) return true
  return isObject(value) && isMinutes(value['MinutesLate']) && isText(value['Comment'])
}

function isMinutes(value: unknown): boolean {
  if (value === undefined || value === null) return true
  return typeof value === 'number' && Number.isInteger(value) && value >= -INT32 && value < INT32
}
