import * as z from 'zod'

import { AdapterError, type ErrorDetail } from '../errors.ts'
import { findConflicts } from './conflicts.ts'
import { type Config, configSchema } from './schema.ts'
import type { FileFault, FilePosition } from './yaml.ts'

/**
 * Validates a configuration and fills in defaults. Throws `ADP_CONFIGURATION` with the path of each fault, including the `earlier` faults.
 * The message for an unknown key suggests the nearest known key. No message repeats a value, because the value could be a misplaced secret.
 * `place` describes the source file, if there is a file.
 */
export function parseConfig(
  input: unknown,
  earlier: readonly FileFault[] = [],
  place: FilePlace = {},
): Config {
  return checkValues(configSchema, input, place, earlier, findConflicts(input))
}

interface FilePlace {
  readonly path?: string | undefined
  readonly positionOf?: (target: string) => FilePosition | undefined
}

/** The maximum number of faults in the message of an error. The details of the error list all faults. */
const maxShown = 100

/** Validates values against a schema. Returns the values with their defaults, or the faults with their paths. */
export function readValues<Schema extends z.ZodType>(
  schema: Schema,
  input: unknown,
): { readonly value: z.output<Schema> | undefined; readonly faults: readonly ErrorDetail[] } {
  // The error callback uses the input only for hints. No message repeats the input.
  const result = schema.safeParse(input, { error: describeIssue, reportInput: true })
  return result.success
    ? { value: result.data, faults: [] }
    : { value: undefined, faults: result.error.issues.flatMap(toDetails) }
}

/** Validates values against any schema, with defaults. Throws `ADP_CONFIGURATION` with all faults, including `earlier` and `later`. */
export function checkValues<Schema extends z.ZodType>(
  schema: Schema,
  input: unknown,
  { path, positionOf }: FilePlace,
  earlier: readonly FileFault[],
  later: readonly FileFault[] = [],
): z.output<Schema> {
  const { value, faults: issues } = readValues(schema, input)
  // A missing secret has already been reported as an earlier fault, so a fault of its placeholder is left out.
  const missing = new Set(earlier.flatMap(({ code, target }) => (code === 'secret' ? [target] : [])))
  const faults: FileFault[] = [...earlier, ...issues.filter(({ target }) => !missing.has(target)), ...later]
  if (value !== undefined && faults.length === 0) return value
  throw refuseConfig(
    faults.map((fault) => ({ ...positionOf?.(fault.target ?? ''), ...fault })),
    path,
  )
}

/** Sorts faults by their position in the file. Faults without a position come first. */
function inOrder(faults: readonly FileFault[]): FileFault[] {
  return faults.toSorted(
    (one, other) => (one.line ?? 0) - (other.line ?? 0) || (one.column ?? 0) - (other.column ?? 0),
  )
}

/** Returns the error for a configuration with these faults. `path` is the path of the configuration file, if there is a file. */
export function refuseConfig(found: readonly FileFault[], path?: string): AdapterError {
  const faults = inOrder(found)
  const count = `${faults.length} fault${faults.length === 1 ? '' : 's'}`
  return new AdapterError(
    'ADP_CONFIGURATION',
    `${path ?? 'The configuration'} has ${count}:\n${listFaults(faults, path ?? 'the file')}`,
    { details: faults, ...(path === undefined ? {} : { at: { path } }) },
  )
}

/** Formats up to `maxShown` faults as lines with place and cause. A fault without path and position is listed under the name `whole`. */
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

/** Returns a hint with the known name that is most like the input, or an empty text. A schema lists its known names in `params.known`. */
function hintOf(issue: z.core.$ZodIssue): string {
  const known: unknown = issue.code === 'custom' ? issue.params?.['known'] : undefined
  if (!Array.isArray(known) || typeof issue.input !== 'string') return ''
  const near = nearest(
    issue.input,
    known.filter((name) => typeof name === 'string'),
  )
  return near === undefined ? '' : `; did you mean ${near}?`
}

function formatPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`
    return text === '' ? String(key) : `${text}.${String(key)}`
  }, '')
}

/** Returns the message of an issue, or `undefined` if the message of zod or of the schema applies. No message contains the value. */
function describeIssue(issue: z.core.$ZodRawIssue): string | undefined {
  // This message is only a list of the known keys. `toDetails` then writes one message for each unknown key.
  if (issue.code === 'unrecognized_keys')
    return issue.inst instanceof z.ZodObject ? Object.keys(issue.inst.shape).join(' ') : ''
  return issue.input === undefined && issue.code === 'invalid_type' ? 'is required' : undefined
}

/** Returns the known key with the smallest edit distance, or `undefined` if that distance is too large for a typing error. */
function nearest(key: string, known: readonly string[]): string | undefined {
  const ranked = known
    .filter((name) => Math.abs(name.length - key.length) <= slipsIn(name))
    .map((name) => ({ name, distance: editDistance(key.toLowerCase(), name.toLowerCase()) }))
    .sort((one, other) => one.distance - other.distance)
  const [best] = ranked
  return best !== undefined && best.distance <= slipsIn(best.name) ? best.name : undefined
}

/** Returns the largest edit distance for a hint. Names that differ more in length are not compared, because a key may be very long. */
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
