import { isGuid, parseInstant } from '../../odata/index.ts'

/** A JSON object. */
export type Members = Readonly<Record<string, unknown>>

export function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** An own member; undefined where there is none, whatever `Object.prototype` has under that name. */
export function memberOf(members: Members, name: string): unknown {
  return Object.hasOwn(members, name) ? members[name] : undefined
}

export const ZERO_GUID = '00000000-0000-0000-0000-000000000000'

/** A longer text is not an id; it would only cost memory as a key. */
const MAX_ID_LENGTH = 64

/** An id in the form in which ids are compared; undefined for what names nothing: another type, an empty or a zero guid. */
export function idOf(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length === 0 || value.length > MAX_ID_LENGTH || value === ZERO_GUID)
    return undefined
  return value.toLowerCase()
}

/** A point in time, exactly, and the unit that its text counts in. */
export interface Moment {
  /** Since 1970. */
  readonly seconds: number
  /** 0 to 999,999,999. */
  readonly nanos: number
  readonly unitNanos: number
}

const SECOND_NANOS = 1_000_000_000
const fraction = /\.(\d+)/

/** The point in time that a text denotes; undefined where it has no date, time and offset. */
export function momentOf(text: string): Moment | undefined {
  // Most texts are no times: this is cheaper than parsing them.
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

/** From the first to the second, in nanoseconds; exact up to a quarter of a year. */
export function nanosBetween(one: Moment, other: Moment): number {
  return (other.seconds - one.seconds) * SECOND_NANOS + other.nanos - one.nanos
}

/** True when both denote one point in time: with other offsets, or with digits of one cut off or rounded away in the other. */
export function isSameMoment(one: Moment, other: Moment): boolean {
  const [fine, coarse] = one.unitNanos <= other.unitNanos ? [one, other] : [other, one]
  const rest = nanosBetween(coarse, fine)
  return rest === 0 || (rest > 0 && rest < coarse.unitNanos) || isRounded(rest, fine, coarse)
}

const isRounded = (rest: number, fine: Moment, coarse: Moment): boolean =>
  fine.unitNanos < coarse.unitNanos && Math.abs(rest) <= coarse.unitNanos / 2

/** True for two guids that differ in the case of their digits at most. */
export function isSameGuid(one: string, other: string): boolean {
  return isGuid(one) && isGuid(other) && one.toLowerCase() === other.toLowerCase()
}

/** True for OData's control information (`@odata.context`, `Enrolments@odata.count`), which is no content of a record. */
export function isControlName(name: string): boolean {
  return name.includes('@')
}

/** Deeper documents are no records of the service; without a bound, one could exhaust the stack. */
export const MAX_DEPTH = 16

interface KeyOptions {
  /** Members of the outermost object that do not count. */
  readonly without?: ReadonlySet<string>
  /** True: texts and nulls as they are, so that equal keys are equal values. */
  readonly exact?: boolean
}

/**
 * A text that is equal for values of the same content: whatever the order of members, the case of guids, the form of times, and whether
 * members are null or missing. It holds values: never kept.
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
