import type { UnmappedField, V2Error } from '../../v2/index.ts'
import { FieldReader } from '../attendance/field-reader.ts'
import { parseRelaxedJson } from '../attendance/relaxed-json.ts'

/**
 * The treatment of a member that is not of the flat write form (batch-wire 4): it drops it, stores those for
 * which V3 has a place, or refuses the record.
 */
export type UnmappedPolicy = 'report' | 'pass' | 'strict'

/** What `pass` takes over, and why a record is refused. */
export interface UnmappedReading {
  readonly errors: readonly V2Error[]
  /** Milliseconds. */
  readonly recordedOn?: number | undefined
  readonly changeProcessName?: string | undefined
  readonly recordedBy?: string | undefined
}

/** Applies the policy to the members; faults name the member, never its value. */
export function readUnmapped(fields: readonly UnmappedField[], policy: UnmappedPolicy): UnmappedReading {
  if (fields.length === 0 || policy === 'report') return { errors: [] }
  if (policy === 'strict') {
    const errors = fields.map(({ name }) => {
      const subject = /^[A-Za-z_@][\w@.]{0,63}$/.test(name) ? name : 'A member'
      return { code: 'UNKNOWN_FIELD', message: `${subject} is not a property of the record. Leave it out.` }
    })
    return { errors }
  }
  const reader = new FieldReader()
  const members = Object.fromEntries(fields.map(({ name, raw }) => [name, parseRelaxedJson(raw)]))
  // Read for its form only: the session's own start counts.
  reader.instant(members, '', 'AttendableEventStart')
  const passed = {
    recordedOn: reader.instant(members, '', 'RecordedOn'),
    changeProcessName: reader.string(members, '', 'ChangeProcessName'),
    recordedBy: reader.guid(members, '', 'RecordedBy'),
  }
  return { ...passed, errors: reader.faults.map(({ message }) => ({ code: 'INVALID_FIELD', message })) }
}
