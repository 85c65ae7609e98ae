import * as z from 'zod'

import { AdapterError, type ErrorDetail } from '../errors.ts'
import { findConflicts } from './conflicts.ts'
import { type Config, configSchema } from './schema.ts'
import type { FileFault, FilePosition } from './yaml.ts'

/**
 * Validates a configuration and fills in defaults. Error: `ADP_CONFIGURATION` with all faults, each with its path; the fault of an
 * unknown key names the nearest known one. `earlier` are faults found before. No fault repeats a value, which could be a
 * misplaced secret. `place` is the file, if any.
 */
export function parseConfig(
  input: unknown,
  earlier: readonly FileFault[] = [],
  place: FilePlace = {},
): Config {
  return checkValues(configSchema, input, place, earlier, findConflicts(input))
}

/** The source file of the values, and the positions of keys in it. */
interface FilePlace {
  readonly path?: string | undefined
  readonly positionOf?: (target: string) => FilePosition | undefined
}

/** Number of faults in the message of an error; its details have all. */
const maxShown = 100

/** Validates values of any schema: the faults, each with its path, or the values with their defaults. */
export function readValues<Schema extends z.ZodType>(
  schema: Schema,
  input: unknown,
): { readonly value: z.output<Schema> | undefined; readonly faults: readonly ErrorDetail[] } {
  // The input is used for hints only: no message repeats it.
  const result = schema.safeParse(input, { error: describeIssue, reportInput: true })
  return result.success
    ? { value: result.data, faults: [] }
    : { value: undefined, faults: result.error.issues.flatMap(toDetails) }
}

/** Returns the values of any schema, or throws `ADP_CONFIGURATION` with their faults, including `earlier` and `later`. */
export function checkValues<Schema extends z.ZodType>(
  schema: Schema,
  input: unknown,
  { path, positionOf }: FilePlace,
  earlier: readonly FileFault[],
  later: readonly FileFault[] = [],
): z.output<Schema> {
  const { value, faults: issues } = readValues(schema, input)
  // The placeholder of a missing secret gets no second fault.
  const missing = new Set(earlier.flatMap(({ code, target }) => (code === 'secret' ? [target] : [])))
  const faults: FileFault[] = [...earlier, ...issues.filter(({ target }) => !missing.has(target)), ...later]
  if (value !== undefined && faults.length === 0) return value
  throw refuseConfig(
    faults.map((fault) => ({ ...positionOf?.(fault.target ?? ''), ...fault })),
    path,
  )
}

/** Sorts faults by their position in the file; those without a position come first. */
function inOrder(faults: readonly FileFault[]): FileFault[] {
  return faults.toSorted(
    (one, other) => (one.line ?? 0) - (other.line ?? 0) || (one.column ?? 0) - (other.column ?? 0),
  )
}

/** The error of a configuration with these faults; `path` is its file, where it has one. */
export function refuseConfig(found: readonly FileFault[], path?: string): AdapterError {
  const faults = inOrder(found)
  const count = `${faults.length} fault${faults.length === 1 ? '' : 's'}`
  return new AdapterError(
    'ADP_CONFIGURATION',
    `${path ?? 'The configuration'} has ${count}:\n${listFaults(faults, path ?? 'the file')}`,
    { details: faults, ...(path === undefined ? {} : { at: { path } }) },
  )
}

/** One line for each of the first faults: place and cause; `whole` names the place of a fault without a path or position. */
export function listFaults(faults: readonly FileFault[], whole: string): string {
  const lines = faults.slice(0, maxShown).map(({ target, message, line, column }) => {
    const place = line === undefined ? '' : `line ${line}, column ${column ?? 1}`
    const words = (target ?? '') === '' ? place : place === '' ? target : `${target} (${place})`
    return `  ${words === '' || words === undefined ? whole : words}: ${message}`
  })
  if (faults.length > maxShown) lines.push(`  and ${faults.length - maxShown} more`)
  return lines.join('\n')
}

function toDetails(issue: z.core.$ZodIssue): ErrorDetail[] {
  if (issue.code !== 'unrecognized_keys')
    return [{ code: issue.code, message: `${issue.message}${hintOf(issue)}`, target: formatPath(issue.path) }]
  const known = issue.message.split(' ').filter((name) => name !== '')
  return issue.keys.map((key) => {
    const near = nearest(key, known)
    const list = known.length === 0 ? 'remove it' : `known keys: ${known.join(', ')}`
    const hint = near === undefined ? list : `did you mean ${near}?`
    return {
      code: 'unknownKey',
      message: `is not a key of the configuration; ${hint}`,
      target: formatPath([...issue.path, key]),
    }
  })
}

/** The nearest of the names that a schema allows for a value, which it lists in `params.known`. */
function hintOf(issue: z.core.$ZodIssue): string {
  const known: unknown = issue.code === 'custom' ? issue.params?.['known'] : undefined
  if (!Array.isArray(known) || typeof issue.input !== 'string') return ''
  const near = nearest(
    issue.input,
    known.filter((name) => typeof name === 'string'),
  )
  return near === undefined ? '' : `; did you mean ${near}?`
}

/** `partners[0].v3.budgetMs` */
function formatPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`
    return text === '' ? String(key) : `${text}.${String(key)}`
  }, '')
}

/** Undefined: zod's message is used, or that of the schema. None of them contains the value. */
function describeIssue(issue: z.core.$ZodRawIssue): string | undefined {
  // For `toDetails`, which writes a message for each of the unknown keys.
  if (issue.code === 'unrecognized_keys')
    return issue.inst instanceof z.ZodObject ? Object.keys(issue.inst.shape).join(' ') : ''
  return issue.input === undefined && issue.code === 'invalid_type' ? 'is required' : undefined
}

/** The known key with the smallest edit distance, if that is small enough for a typing error. */
function nearest(key: string, known: readonly string[]): string | undefined {
  const ranked = known
    .filter((name) => Math.abs(name.length - key.length) <= slipsIn(name))
    .map((name) => ({ name, distance: editDistance(key.toLowerCase(), name.toLowerCase()) }))
    .sort((one, other) => one.distance - other.distance)
  const [best] = ranked
  return best !== undefined && best.distance <= slipsIn(best.name) ? best.name : undefined
}

/** Largest edit distance of a hint. Texts whose lengths differ by more are not compared: a key may be very long. */
const slipsIn = (name: string): number => Math.max(2, name.length / 3)

function editDistance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (let i = 1; i <= one.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= other.length; j += 1) {
      const change = (row[j - 1] ?? 0) + (one[i - 1] === other[j - 1] ? 0 : 1)
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[other.length] ?? 0
}
