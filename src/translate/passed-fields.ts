import { isGuid } from '../odata/index.ts'
import type { RecordFault, UnmappedField } from '../v2/record/flat-record.ts'
import { JsonReader } from '../v2/record/json-reader.ts'
import type { V3Reference } from '../v3/record.ts'

/** Members beyond the write form that V3 has, too (service.md 2.10); `unmappedFields: pass` forwards them. */
export interface PassedFields {
  RecordedOn?: string
  AttendableEventStart?: string
  ChangeProcessName?: string | null
  RecordedBy?: V3Reference | null
}

/** `Type` of RecordedBy (service.md 2.10). */
const USER_TYPE = 'AuthorisedUser'
const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,12})?)?(?:Z|[+-]\d\d:\d\d)$/

/** Reads one such member into `passed`. Returns `noPlace` for a member that V3 does not have, a fault for a bad value. */
export function readPassedField(
  field: UnmappedField,
  passed: PassedFields,
): RecordFault | 'noPlace' | undefined {
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
  return { code: 'ADP_FIELD', message: `${name} ${rule}.` }
}
