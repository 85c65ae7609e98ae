import { isGuid } from '../../odata/index.ts'
import { type V3Reply, ZERO_GUID } from './v3-record.ts'

const INT32 = 2_147_483_648

/**
 * True for a value that counts as a reply to a POST: it has an id and no member of a wrong type; the rest may be missing. Written
 * out member by member: a schema library takes longer for it than JSON.parse for the text.
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
    (value['RecordedBy'] === null || isReference(value['RecordedBy'])) &&
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
  return value === undefined || typeof value === 'boolean'
}

function isText(value: unknown): boolean {
  return value === undefined || value === null || typeof value === 'string'
}

function isReference(value: unknown): boolean {
  return value === undefined || (isObject(value) && isId(value['ExternalID']) && isText(value['Type']))
}

function isQualifier(value: unknown): boolean {
  if (value === undefined || value === null) return true
  return isObject(value) && isMinutes(value['MinutesLate']) && isText(value['Comment'])
}

function isMinutes(value: unknown): boolean {
  if (value === undefined || value === null) return true
  return typeof value === 'number' && Number.isInteger(value) && value >= -INT32 && value < INT32
}
