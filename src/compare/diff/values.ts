import { isGuid, parseInstant } from '../../odata/index.ts'

export type Members = Readonly<Record<string, unknown>>

export function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns an own member of an object, or `undefined` if the object lacks the member. Members of `Object.prototype` are never returned. */
export function memberOf(members: Members, name: string): unknown {
  return Object.hasOwn(members, name) ? members[name] : undefined
}

export const ZERO_GUID = '00000000-0000-0000-0000-000000000000'

/** The maximum length of an id. A longer text is not an id, and as a key it would waste memory. */
const MAX_ID_LENGTH = 64

/** Returns an id in lower case, or `undefined` if the value is not a string, is empty or too long, or is the zero GUID. */
export function idOf(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length === 0 || value.length > MAX_ID_LENGTH || value === ZERO_GUID)
    return undefined
  return value.toLowerCase()
}

/** A point in time. `unitNanos` is its precision: the value of the last digit of its text, in nanoseconds. */
export interface Moment {
  /** Seconds since the epoch (1970). */
  readonly seconds: number
  readonly nanos: number
  readonly unitNanos: number
}

const SECOND_NANOS = 1_000_000_000
const fraction = /\.(\d+)/

/** Parses a time. Returns `undefined` if the date, the time of day or the offset is missing. */
export function momentOf(text: string): Moment | undefined {
  // Most texts are not times, and this check costs less than parsing them.
  if (text.length < 17 || text.length > 40 || text.charCodeAt(4) !== 0x2d) return undefined
  const ms = parseInstant(text)?.ms
  if (ms === undefined || Number.isNaN(ms)) return undefined
  const digits = (fraction.exec(text)?.[1] ?? '').slice(0, 9)
  return {
    seconds: Math.floor(ms / 1_000),
    nanos: Number(digits.padEnd(9, '0')),
    unitNanos: SECOND_NANOS / 10 ** digits.length,
  }
}

/** Returns the nanoseconds from `one` to `other`. The result is exact up to a quarter of a year. */
export function nanosBetween(one: Moment, other: Moment): number {
  return (other.seconds - one.seconds) * SECOND_NANOS + other.nanos - one.nanos
}

/** Returns true if two times are the same point in time. Offsets may differ, and one time may be cut or rounded to fewer digits. */
export function isSameMoment(one: Moment, other: Moment): boolean {
  const [fine, coarse] = one.unitNanos <= other.unitNanos ? [one, other] : [other, one]
  const rest = nanosBetween(coarse, fine)
  return rest === 0 || (rest > 0 && rest < coarse.unitNanos) || isRounded(rest, fine, coarse)
}

const isRounded = (rest: number, fine: Moment, coarse: Moment): boolean =>
  fine.unitNanos < coarse.unitNanos && Math.abs(rest) <= coarse.unitNanos / 2

export function isSameGuid(one: string, other: string): boolean {
  return isGuid(one) && isGuid(other) && one.toLowerCase() === other.toLowerCase()
}

/** Returns true for OData control information (`@odata.context`, `Enrolments@odata.count`), which is not content of a record. */
export function isControlName(name: string): boolean {
  return name.includes('@')
}

/** The maximum depth of a document. Records of the service are less deep, and a deeper document could exhaust the stack. */
export const MAX_DEPTH = 16

interface KeyOptions {
  readonly without?: ReadonlySet<string>
  /** True to keep texts and nulls unchanged, so that only equal values have equal keys. Default: false. */
  readonly exact?: boolean
}

/**
 * Returns a text that is equal for values of the same content. The order of members, the case of GUIDs and the form of times do not matter,
 * and a null counts as a missing member. The text contains values, so it must not be stored.
 */
export function contentKey(value: unknown, { without, exact = false }: KeyOptions = {}, depth = 0): string {
  if (depth > MAX_DEPTH) return '…'
  const inside = (member: unknown): string => contentKey(member, { exact }, depth + 1)
  if (typeof value === 'string') return JSON.stringify(exact ? value : canonicalText(value))
  if (Array.isArray(value)) return `[${value.map(inside).join()}]`
  if (!isMembers(value)) return String(value)
  const members = Object.keys(value)
    .filter((name) => (exact || value[name] !== null) && !isControlName(name) && without?.has(name) !== true)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${inside(value[name])}`)
  return `{${members.join()}}`
}

function canonicalText(text: string): string {
  if (isGuid(text)) return text.toLowerCase()
  const moment = momentOf(text)
  return moment === undefined ? text : `${moment.seconds}.${moment.nanos}`
}
