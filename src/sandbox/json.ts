import { z } from 'zod'

import type { ErrorDetail } from '../errors.ts'
import { isGuid } from '../odata/index.ts'

export type Json = string | number | boolean | null | Json[] | { [name: string]: Json }

export type Entity = Readonly<Record<string, Json>>

export const isEntity = (value: Json): value is Record<string, Json> => isMembers(value)

const isMembers = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

// An Edm.DateTimeOffset, which is ISO 8601 with an offset (OData ABNF dateTimeOffsetValue).
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,12})?)?(?:Z|[+-]\d\d:\d\d)$/

const required = (expected: string) => ({
  error: ({ input }: { readonly input?: unknown }): string =>
    input === undefined || input === null ? 'is required' : expected,
})
const guid = z.string(required('must be a guid')).refine(isGuid, 'must be a guid').toLowerCase()
const instantText = 'must be a date and time with offset'
const instant = z
  .string(instantText)
  .refine((text) => INSTANT.test(text) && !Number.isNaN(Date.parse(text)), instantText)
  .transform((text) => Date.parse(text))

/** Schemas for the members of a posted object, by the type of the member. Each member may be missing or null. */
export const fields = {
  boolean: z.boolean('must be true or false').nullish(),
  string: z.string('must be a string').nullish(),
  int32: z.int32('must be a 32-bit integer').nullish(),
  guid: guid.nullish(),
  /** Converts a date and time to milliseconds since 1970. */
  instant: instant.nullish(),
}

/** Creates the schema of a reference to another entity. `shape` contains further members in addition to ExternalID. */
export const reference = <Shape extends z.ZodRawShape>(shape: Shape, expected: string) =>
  z.object({ ExternalID: guid, ...shape }, required(`must be an object with ${expected}`))

/** Validates a posted object and returns every error. Errors contain names but never values. Annotations are ignored. */
export function readMembers<Value>(
  schema: z.ZodType<Value>,
  given: unknown,
): { readonly value: Value } | { readonly faults: readonly ErrorDetail[] } {
  const members = isMembers(given)
    ? Object.fromEntries(Object.entries(given).filter(([name]) => !name.includes('@')))
    : given
  const read = schema.safeParse(members)
  if (read.success) return { value: read.data }
  const fault = (target: string, message: string): ErrorDetail => ({ code: 'InvalidField', target, message })
  const faults = read.error.issues.flatMap((issue) => {
    if (issue.code === 'unrecognized_keys')
      return issue.keys.map((name) => fault(name, `The property '${name.slice(0, 64)}' cannot be set.`))
    const target = issue.path.join('/')
    return [
      fault(target, target === '' ? 'The body must be one JSON object.' : `${target} ${issue.message}.`),
    ]
  })
  return { faults }
}

/** Parses JSON whose strings may be in single quotes (service.md 4, rule 2 for POST). Returns `undefined` for malformed text. */
export function parseRelaxedJson(text: string): unknown {
  const strict = parseJson(text)
  return strict === undefined && text.includes("'") ? parseJson(toDoubleQuotes(text)) : strict
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Matches a string in single or double quotes, which may be unclosed, or the text up to the next quote. */
const PIECE = /"(?:[^"\\]|\\[^])*"?|'(?:[^'\\]|\\[^])*'?|[^"']+/g

/** Converts strings in single quotes to double quotes. All other text stays unchanged, so malformed text remains malformed. */
function toDoubleQuotes(text: string): string {
  return text.replace(PIECE, (piece) => {
    if (!piece.startsWith("'") || piece.length < 2 || !piece.endsWith("'")) return piece
    // \' is a valid escape only in single quotes, so the backslash is removed. A " must be escaped in double quotes.
    return `"${piece.slice(1, -1).replace(/\\'|"|\\[^]/g, (part) => (part === "\\'" ? "'" : part === '"' ? '\\"' : part))}"`
  })
}
