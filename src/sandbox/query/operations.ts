import {
  type Arithmetic,
  type ArithmeticNode,
  type CallNode,
  type Comparison,
  type Instant,
  type Scalar,
  TICKS_OF_MS,
  toInstant,
} from '../../odata/index.ts'

export const isInstant = (value: Scalar): value is Instant => typeof value === 'object' && value !== null

/** Compares strings by code point, which is also the order of their UTF-8 bytes. */
function orderStrings(left: string, right: string): number {
  if (left === right) return 0
  const length = Math.min(left.length, right.length)
  let at = 0
  while (at < length && left.charCodeAt(at) === right.charCodeAt(at)) at += 1
  if (at === length) return left.length - right.length
  return rank(left.charCodeAt(at)) - rank(right.charCodeAt(at))
}

/** Ranks surrogates above all other code units, because surrogates encode code points above U+FFFF. */
const rank = (unit: number): number => (unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit)

/** Compares two non-null values of one family. Returns a negative, zero or positive number, or NaN if the values have no order. */
export function orderScalars(left: Scalar, right: Scalar): number {
  if (typeof left === 'string' && typeof right === 'string') return orderStrings(left, right)
  if (isInstant(left) && isInstant(right)) {
    const order = left.ms === right.ms ? 0 : left.ms - right.ms
    return order === 0 ? (left.ticks ?? 0) - (right.ticks ?? 0) : order
  }
  const first = toNumber(left)
  const second = toNumber(right)
  // Equal values are compared first, because the difference of two equal infinities is NaN.
  return first === second ? 0 : first - second
}

/** Converts a value to the number by which values are compared. Instants are compared as points in time, regardless of their offset. */
export function toNumber(value: Scalar): number {
  if (isInstant(value)) return value.ms + (value.ticks ?? 0) / TICKS_OF_MS
  return value === null ? NaN : Number(value)
}

function equal(left: Scalar, right: Scalar): boolean {
  if (left === null || right === null) return left === right
  return orderScalars(left, right) === 0
}

/**
 * Compares two values (OData URL conventions 5.1.1.1). Null equals only null and has no order, so `null ge null` is true and `null gt 1` is
 * false. NaN does not equal itself.
 */
export function compareScalars(operator: Comparison, left: Scalar, right: Scalar): boolean {
  switch (operator) {
    case 'eq':
      return equal(left, right)
    case 'ne':
      return !equal(left, right)
    case 'ge':
      return equal(left, right) || isGreater(left, right)
    case 'le':
      return equal(left, right) || isGreater(right, left)
    case 'gt':
      return isGreater(left, right)
    case 'lt':
      return isGreater(right, left)
  }
}

const isGreater = (left: Scalar, right: Scalar): boolean =>
  left !== null && right !== null && orderScalars(left, right) > 0

const minuteMs = 60_000
const dayMs = 86_400_000

function calculate(operator: Arithmetic, left: number, right: number): number | null {
  switch (operator) {
    case 'add':
      return left + right
    case 'sub':
      return left - right
    case 'mul':
      return left * right
    case 'div':
      return right === 0 ? null : left / right
    case 'mod':
      return right === 0 ? null : left % right
  }
}

/**
 * Computes an arithmetic node (OData URL conventions 5.1.1.2). The result is null if an operand is null. A division by a zero in the data
 * also gives null, so that a single row cannot fail the whole request.
 */
export function computeArithmetic(node: ArithmeticNode, left: Scalar, right: Scalar): Scalar {
  if (left === null || right === null) return null
  const result = calculate(node.operator, toNumber(left), toNumber(right))
  if (result === null) return null
  switch (node.type.family) {
    case 'instant':
      return toInstant(result, isInstant(left) ? left.offsetMinutes : 0)
    case 'date':
      // Rounds down to a day: adding less than a day gives the same day, and subtracting less than a day gives the day before.
      return Math.floor(result / dayMs) * dayMs
    default:
      return node.integer ? Math.trunc(result) : result
  }
}

/** The implementation of a built-in function. The arguments are not null and belong to the families that the check accepted. */
type Implementation = (first: Scalar, second?: Scalar, third?: Scalar) => Scalar

const lengthOf = (text: string): number => Array.from(text).length

function indexOf(text: string, part: string): number {
  const index = text.indexOf(part)
  return index <= 0 ? index : lengthOf(text.slice(0, index))
}

/** Returns a substring. A negative start counts from the end (OData URL conventions 5.1.1.5.7). */
function substring(text: string, start: number, length = Infinity): string | null {
  if (length < 0) return null
  const characters = Array.from(text)
  const from = start < 0 ? Math.max(0, characters.length + start) : start
  return characters.slice(from, from + length).join('')
}

const asText = (value: Scalar | undefined): string => (typeof value === 'string' ? value : '')

const onStrings =
  (apply: (first: string, second: string) => Scalar): Implementation =>
  (first, second) =>
    apply(asText(first), asText(second))

/** Returns the local time of a value in milliseconds, in the offset in which the value was written. */
const localMs = (value: Scalar): number =>
  isInstant(value) ? value.ms + value.offsetMinutes * minuteMs : toNumber(value)

const sinceMidnight = (value: Scalar): number => {
  const ms = localMs(value)
  const fraction = isInstant(value) ? (value.ticks ?? 0) / TICKS_OF_MS : 0
  return ms - Math.floor(ms / dayMs) * dayMs + fraction
}

const onTime =
  (apply: (ms: number) => number): Implementation =>
  (value) =>
    apply(sinceMidnight(value))

const onDate =
  (apply: (date: Date) => number): Implementation =>
  (value) =>
    apply(new Date(localMs(value)))

const onNumber =
  (apply: (value: number) => number): Implementation =>
  (value) =>
    apply(toNumber(value))

const implementations: Readonly<Record<string, Implementation>> = {
  concat: onStrings((first, second) => first + second),
  contains: onStrings((text, part) => text.includes(part)),
  endswith: onStrings((text, part) => text.endsWith(part)),
  startswith: onStrings((text, part) => text.startsWith(part)),
  indexof: onStrings(indexOf),
  length: onStrings((text) => lengthOf(text)),
  tolower: onStrings((text) => text.toLowerCase()),
  toupper: onStrings((text) => text.toUpperCase()),
  trim: onStrings((text) => text.trim()),
  substring: (text, start = null, length) =>
    substring(asText(text), toNumber(start), length === undefined ? undefined : toNumber(length)),
  year: onDate((date) => date.getUTCFullYear()),
  month: onDate((date) => date.getUTCMonth() + 1),
  day: onDate((date) => date.getUTCDate()),
  hour: onTime((ms) => Math.floor(ms / (60 * minuteMs))),
  minute: onTime((ms) => Math.floor(ms / minuteMs) % 60),
  second: onTime((ms) => Math.floor(ms / 1000) % 60),
  fractionalseconds: onTime((ms) => Math.round((ms % 1000) * TICKS_OF_MS) / (1000 * TICKS_OF_MS)),
  totalseconds: onNumber((ms) => ms / 1000),
  date: (value) => Math.floor(localMs(value) / dayMs) * dayMs,
  time: onTime((ms) => ms),
  totaloffsetminutes: (value) => (isInstant(value) ? value.offsetMinutes : 0),
  // Midpoints are rounded away from zero (OData URL conventions 5.1.1.9.3).
  round: onNumber((value) => Math.sign(value) * Math.round(Math.abs(value))),
  floor: onNumber(Math.floor),
  ceiling: onNumber(Math.ceil),
}

/** Returns the implementation of a call. The result of the call is null if an argument is null (OData URL conventions 5.1.1.4). */
export function implementCall({ name }: CallNode): (...values: readonly Scalar[]) => Scalar {
  const implementation = implementations[name]
  return (...values) => {
    const [first = null, second, third] = values
    return implementation === undefined || values.includes(null) ? null : implementation(first, second, third)
  }
}
