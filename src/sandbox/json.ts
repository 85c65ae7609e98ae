import type { ErrorDetail } from '../errors.ts'
import { isGuid } from '../odata/index.ts'

/** A JSON value. */
export type Json = string | number | boolean | null | Json[] | { [name: string]: Json }

/** An entity as JSON, with its contained collections inside. */
export type Entity = Readonly<Record<string, Json>>

/** True for a JSON object. */
export const isEntity = (value: Json): value is Record<string, Json> => isMembers(value)

/** Members of a JSON object that a client sent. */
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

/**
 * Reads JSON whose strings may be in single quotes (service.md 4, rule 2 for POST). Undefined for faulty text:
 * the value of a JSON text is never undefined.
 */
export function parseRelaxedJson(text: string): unknown {
  const strict = parse(text)
  return strict === undefined && text.includes("'") ? parse(toDoubleQuotes(text)) : strict
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A string in either kind of quotes, closed or not, or the text up to the next one. */
const PIECE = /"(?:[^"\\]|\\[^])*"?|'(?:[^'\\]|\\[^])*'?|[^"']+/g

/** Rewrites single-quoted strings; everything else stays, so that faulty text stays faulty. */
function toDoubleQuotes(text: string): string {
  return text.replace(PIECE, (piece) => {
    if (!piece.startsWith("'") || piece.length < 2 || !piece.endsWith("'")) return piece
    // \' is an escape of single-quoted text only; a bare " must get one.
    return `"${piece.slice(1, -1).replace(/\\'|"|\\[^]/g, (part) => (part === "\\'" ? "'" : part === '"' ? '\\"' : part))}"`
  })
}
