import type { ErrorDetail } from '../../errors.ts'
import { isGuid } from '../../odata/index.ts'

/** Members of a JSON object. */
export type Members = Readonly<Record<string, unknown>>

/** True for a JSON object. */
export const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

// ISO 8601 with an offset, as Edm.DateTimeOffset has it (OData ABNF dateTimeOffsetValue).
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,12})?)?(?:Z|[+-]\d\d:\d\d)$/

/** Reads fields of a posted object by type and collects every fault; names are reported, values never. */
export class FieldReader {
  readonly faults: ErrorDetail[] = []

  refuse(target: string, message: string): void {
    this.faults.push({ code: 'InvalidField', target, message })
  }

  /** A field of a kind; undefined where it is missing, null or refused. `path` ends with a slash or is empty. */
  optional<Kind>(
    members: Members,
    path: string,
    name: string,
    is: (value: unknown) => value is Kind,
    expected: string,
  ): Kind | undefined {
    const value = members[name]
    if (value === undefined || value === null) return undefined
    if (is(value)) return value
    this.refuse(`${path}${name}`, `${path}${name} must be ${expected}.`)
    return undefined
  }

  boolean(members: Members, path: string, name: string): boolean | undefined {
    return this.optional(members, path, name, (value) => typeof value === 'boolean', 'true or false')
  }

  string(members: Members, path: string, name: string): string | undefined {
    return this.optional(members, path, name, (value) => typeof value === 'string', 'a string')
  }

  int32(members: Members, path: string, name: string): number | undefined {
    return this.optional(members, path, name, isInt32, 'a 32-bit integer')
  }

  /** A guid in lower case. */
  guid(members: Members, path: string, name: string): string | undefined {
    return this.optional(members, path, name, isGuidText, 'a guid')?.toLowerCase()
  }

  /** Milliseconds. */
  instant(members: Members, path: string, name: string): number | undefined {
    const text = this.optional(members, path, name, isInstant, 'a date and time with offset')
    return text === undefined ? undefined : Date.parse(text)
  }
}

const isGuidText = (value: unknown): value is string => typeof value === 'string' && isGuid(value)
const isInt32 = (value: unknown): value is number => typeof value === 'number' && (value | 0) === value
const isInstant = (value: unknown): value is string =>
  typeof value === 'string' && INSTANT.test(value) && !Number.isNaN(Date.parse(value))
