import { primitiveFamilies, type PrimitiveType } from '../csdl.ts'

/** A family of types. Values of two types can be compared if both types belong to one family. */
export type Family = (typeof primitiveFamilies)[PrimitiveType] | 'null' | 'enum' | 'structured'

/** The type of an expression, whose result is one value or a collection of values. */
export interface ValueType {
  readonly family: Family
  /** The name of a primitive type such as `Edm.Int32`, the qualified name of a declared type, or `null`. */
  readonly name: string
  readonly collection: boolean
}

export const primitive = (name: PrimitiveType): ValueType => ({
  family: primitiveFamilies[name],
  name,
  collection: false,
})

export const booleanType: ValueType = primitive('Edm.Boolean')

/** The type of the `null` literal, which is compatible with every other type. */
export const nullType: ValueType = { family: 'null', name: 'null', collection: false }

/** Returns true for an integer type, for which `div` returns a whole number. */
export const isInteger = ({ name }: ValueType): boolean => /^Edm\.(?:S?Byte|Int\d\d)$/.test(name)

export const describeType = ({ name, collection }: ValueType): string =>
  collection ? `Collection(${name})` : name

/** A point in time, in milliseconds since 1970, with the UTC offset in which it was written. */
export interface Instant {
  readonly ms: number
  /** The number of 100 ns steps after `ms`, from 0 (the default) to 9,999. `ms` is a double, which is not precise enough for the steps. */
  readonly ticks?: number
  readonly offsetMinutes: number
}

/**
 * A value at run time. Guids are lower-case strings, and binary values are base64url strings without padding. An enumeration value is its
 * number. Dates are milliseconds since 1970, times of day are milliseconds since midnight, and durations are milliseconds.
 */
export type Scalar = null | boolean | number | string | Instant

const minuteMs = 60_000
/** Number of 100 ns steps in a millisecond. Services on .NET store times in steps of 100 ns. */
export const TICKS_OF_MS = 10_000

const datePattern = /^(-?\d{4,})-(\d\d)-(\d\d)$/
const timePattern = /^([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d|60)(?:\.(\d+))?)?$/
const offsetPattern = /^([+-])(\d\d):(\d\d)$/
const durationPattern =
  /^(-)?P(?=\d|T\d)(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d+))?S)?)?$/
// The form in which the service writes instants. The pattern matches only days 1 to 28, so it needs no check of the calendar.
const plainUtc =
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,3})?Z$/

/**
 * Converts seconds to milliseconds. Parses the fraction on its own, because multiplying the whole decimal number by 1,000 would cause
 * rounding errors.
 */
const secondsToMs = (seconds: string, fraction = ''): number => {
  // OData allows at most 12 digits (ABNF fractionalSeconds).
  const digits = fraction.slice(0, 12).padEnd(3, '0')
  return Number(seconds) * 1000 + Number(digits) / 10 ** (digits.length - 3)
}

/** Parses an `Edm.Date` to the start of the day in UTC, in milliseconds since 1970. Returns `undefined` if the calendar has no such day. */
export function parseDate(text: string): number | undefined {
  const [, year, month, day] = datePattern.exec(text) ?? []
  if (year === undefined) return undefined
  const date = new Date(0)
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day))
  const isReal = date.getUTCMonth() === Number(month) - 1 && date.getUTCDate() === Number(day)
  return isReal ? date.getTime() : undefined
}

/** Parses an `Edm.TimeOfDay` to milliseconds since midnight, or returns `undefined`. Second 60 is accepted as a leap second. */
export function parseTimeOfDay(text: string): number | undefined {
  const [, hour, minute, second = '0', fraction] = timePattern.exec(text) ?? []
  if (hour === undefined) return undefined
  return (Number(hour) * 60 + Number(minute)) * minuteMs + secondsToMs(second, fraction)
}

/** Parses an `Edm.DateTimeOffset`: a date, `T`, a time of day, and `Z` or an offset. Returns `undefined` if the text has another form. */
export function parseInstant(text: string): Instant | undefined {
  if (plainUtc.test(text)) return { ms: Date.parse(text), offsetMinutes: 0 }
  const upper = text.toUpperCase()
  const [date = '', rest = ''] = upper.split('T')
  const zone = rest.endsWith('Z') ? 'Z' : rest.slice(-6)
  const day = parseDate(date)
  const time = parseTimeOfDay(rest.slice(0, rest.length - zone.length))
  const [, sign, hours, minutes] = offsetPattern.exec(zone) ?? []
  if (day === undefined || time === undefined || (zone !== 'Z' && sign === undefined)) return undefined
  const offset = zone === 'Z' ? 0 : Number(hours) * 60 + Number(minutes)
  const offsetMinutes = sign === '-' ? -offset : offset
  const ofDay = toInstant(time, offsetMinutes)
  return { ...ofDay, ms: day + ofDay.ms - offsetMinutes * minuteMs }
}

/** Creates an instant. Splits fractional milliseconds into whole milliseconds and 100 ns steps, as precisely as a double allows. */
export function toInstant(msWithFraction: number, offsetMinutes: number): Instant {
  const ms = Math.floor(msWithFraction)
  // 0.001 is added because the product may be slightly below the whole number that it represents.
  const ticks = Math.min(TICKS_OF_MS - 1, Math.floor((msWithFraction - ms) * TICKS_OF_MS + 0.001))
  return ticks > 0 ? { ms, ticks, offsetMinutes } : { ms, offsetMinutes }
}

/** Parses an `Edm.Duration` such as `-P1DT2H3M4.5S`. Returns milliseconds, or `undefined` if the text is not a duration. */
export function parseDuration(text: string): number | undefined {
  const match = durationPattern.exec(text)
  if (match === null) return undefined
  const [, sign, days = '0', hours = '0', minutes = '0', seconds = '0', fraction] = match
  const wholeMinutes = (Number(days) * 24 + Number(hours)) * 60 + Number(minutes)
  const total = wholeMinutes * minuteMs + secondsToMs(seconds, fraction)
  return sign === undefined ? total : -total
}

/** Parses a number in the notation of OData, including `INF` and `NaN`. Returns `undefined` if the text is not a number. */
export function parseNumber(text: string): number | undefined {
  if (text === 'INF') return Infinity
  if (text === '-INF') return -Infinity
  if (text === 'NaN') return NaN
  const value = Number(text)
  return Number.isNaN(value) ? undefined : value
}

/** Returns the number of a member such as `YearGroup`, or a number such as `2` unchanged. Returns `undefined` for any other text. */
export function parseEnum(member: string, valueByMember: ReadonlyMap<string, number>): number | undefined {
  return valueByMember.get(member) ?? (/^[+-]?\d+$/.test(member) ? Number(member) : undefined)
}

/** Returns true for a text in the form of an `Edm.Guid`: 8-4-4-4-12 hexadecimal digits in upper or lower case (OData ABNF `guidValue`). */
export const isGuid = (text: string): boolean =>
  /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(text)
