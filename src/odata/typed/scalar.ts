import { primitiveFamilies, type PrimitiveType } from '../csdl.ts'

/** How values behave: two types of one family compare with each other. */
export type Family = (typeof primitiveFamilies)[PrimitiveType] | 'null' | 'enum' | 'structured'

/** The type of an expression: one value, or a collection of such values. */
export interface ValueType {
  readonly family: Family
  /** `Edm.Int32`, the qualified name of a declared type, or `null`. */
  readonly name: string
  readonly collection: boolean
}

/** The single-valued type of a primitive. */
export const primitive = (name: PrimitiveType): ValueType => ({
  family: primitiveFamilies[name],
  name,
  collection: false,
})

export const booleanType: ValueType = primitive('Edm.Boolean')

/** The type of the `null` literal, which fits everywhere. */
export const nullType: ValueType = { family: 'null', name: 'null', collection: false }

/** Whether `div` of values of this type is a whole number. */
export const isInteger = ({ name }: ValueType): boolean => /^Edm\.(?:S?Byte|Int\d\d)$/.test(name)

/** How error messages name a type. */
export const describeType = ({ name, collection }: ValueType): string =>
  collection ? `Collection(${name})` : name

/** A point in time: milliseconds since 1970, and the offset in which it was written. */
export interface Instant {
  readonly ms: number
  /** Steps of 100 ns after `ms`, fewer than 10,000: a double has no room for them beside the years since 1970. Default 0. */
  readonly ticks?: number
  readonly offsetMinutes: number
}

/**
 * A value at run time, by family: boolean; number; string (also guid, lower-case, and binary, base64url without
 * padding); the number of an enumeration value; an `Instant`; milliseconds for date (since 1970), timeOfDay (since
 * midnight) and duration.
 */
export type Scalar = null | boolean | number | string | Instant

const minuteMs = 60_000
/** Steps of 100 ns, to which services of .NET store times. */
export const TICKS_OF_MS = 10_000

const datePattern = /^(-?\d{4,})-(\d\d)-(\d\d)$/
const timePattern = /^([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d|60)(?:\.(\d+))?)?$/
const offsetPattern = /^([+-])(\d\d):(\d\d)$/
const durationPattern =
  /^(-)?P(?=\d|T\d)(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d+))?S)?)?$/
// The form that the service itself writes, on days that every month has: no check of the calendar is needed.
const plainUtc =
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,3})?Z$/

/** Milliseconds of whole seconds and the digits after their point, without the error of a decimal product. */
const secondsToMs = (seconds: string, fraction = ''): number => {
  // As many digits as OData has (ABNF fractionalSeconds).
  const digits = fraction.slice(0, 12).padEnd(3, '0')
  return Number(seconds) * 1000 + Number(digits) / 10 ** (digits.length - 3)
}

/** Milliseconds from 1970 to the start of a date; `undefined` for a day that does not exist (proleptic Gregorian). */
export function parseDate(text: string): number | undefined {
  const [, year, month, day] = datePattern.exec(text) ?? []
  if (year === undefined) return undefined
  const date = new Date(0)
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day))
  const isReal = date.getUTCMonth() === Number(month) - 1 && date.getUTCDate() === Number(day)
  return isReal ? date.getTime() : undefined
}

/** Milliseconds since midnight; second 60 is the leap second. */
export function parseTimeOfDay(text: string): number | undefined {
  const [, hour, minute, second = '0', fraction] = timePattern.exec(text) ?? []
  if (hour === undefined) return undefined
  return (Number(hour) * 60 + Number(minute)) * minuteMs + secondsToMs(second, fraction)
}

/** An Edm.DateTimeOffset: a date, `T`, a time of day, and `Z` or an offset. */
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

/** The instant of milliseconds with a fraction, as far as the number has room for the fraction. */
export function toInstant(msWithFraction: number, offsetMinutes: number): Instant {
  const ms = Math.floor(msWithFraction)
  // A product of decimal digits may lie a little below the whole number that it stands for.
  const ticks = Math.min(TICKS_OF_MS - 1, Math.floor((msWithFraction - ms) * TICKS_OF_MS + 0.001))
  return ticks > 0 ? { ms, ticks, offsetMinutes } : { ms, offsetMinutes }
}

/** Milliseconds of a dayTimeDuration such as `-P1DT2H3M4.5S`. */
export function parseDuration(text: string): number | undefined {
  const match = durationPattern.exec(text)
  if (match === null) return undefined
  const [, sign, days = '0', hours = '0', minutes = '0', seconds = '0', fraction] = match
  const wholeMinutes = (Number(days) * 24 + Number(hours)) * 60 + Number(minutes)
  const total = wholeMinutes * minuteMs + secondsToMs(seconds, fraction)
  return sign === undefined ? total : -total
}

/** The value of a number in OData's spelling, as an IEEE double. */
export function parseNumber(text: string): number | undefined {
  if (text === 'INF') return Infinity
  if (text === '-INF') return -Infinity
  if (text === 'NaN') return NaN
  const value = Number(text)
  return Number.isNaN(value) ? undefined : value
}

/** The number of an enumeration value such as `YearGroup` or `2`. */
export function parseEnum(member: string, valueByMember: ReadonlyMap<string, number>): number | undefined {
  return valueByMember.get(member) ?? (/^[+-]?\d+$/.test(member) ? Number(member) : undefined)
}

/** True for the text of an `Edm.Guid`: 8-4-4-4-12 hexadecimal digits in any case (OData ABNF `guidValue`). */
export const isGuid = (text: string): boolean =>
  /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(text)
