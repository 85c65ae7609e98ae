import type { ModelIndex } from '../typed/model-index.ts'
import {
  isInstant,
  isInteger,
  parseDate,
  parseDuration,
  parseEnum,
  parseInstant,
  parseNumber,
  parseTimeOfDay,
  type Scalar,
  type ValueType,
} from '../typed/scalar.ts'
import { toNumber } from './operations.ts'

/** Reads a property's JSON value; null for null, absent and unreadable values alike. */
type ReadScalar = (raw: unknown) => Scalar

const readText =
  (parse: (text: string) => Scalar | undefined): ReadScalar =>
  (raw) =>
    typeof raw === 'string' ? (parse(raw) ?? null) : null

/** Numbers may be JSON strings (IEEE754Compatible), which also hold INF and NaN. */
function readNumber(raw: unknown): Scalar {
  if (typeof raw === 'number') return raw
  if (typeof raw !== 'string' || raw === '') return null
  return parseNumber(raw) ?? null
}

/** The reader for values of a type in an entity's JSON. */
export function scalarReader(type: ValueType, index: ModelIndex): ReadScalar {
  switch (type.family) {
    case 'boolean':
      return (raw) => (typeof raw === 'boolean' ? raw : null)
    case 'number':
      return readNumber
    case 'string':
      return (raw) => (typeof raw === 'string' ? raw : null)
    case 'guid':
      return readText((text) => text.toLowerCase())
    case 'binary':
      return readText((text) => text.replace(/=+$/, '').replaceAll('+', '-').replaceAll('/', '_'))
    case 'instant':
      return readText(parseInstant)
    case 'date':
      return readText(parseDate)
    case 'timeOfDay':
      return readText(parseTimeOfDay)
    case 'duration':
      return readText(parseDuration)
    case 'enum': {
      const info = index.findType(type.name)
      const members = info?.kind === 'enum' ? info.valueByMember : new Map<string, number>()
      return (raw) =>
        typeof raw === 'string' ? (parseEnum(raw.split(','), members) ?? null) : readNumber(raw)
    }
    case 'structured':
      // Only ever compared with null: being there is all that counts.
      return (raw) => (raw === null || raw === undefined ? null : true)
    case 'null':
      return () => null
  }
}

const minuteMs = 60_000

const isoUtc = (ms: number): string => {
  const date = new Date(ms)
  return Number.isNaN(date.getTime()) ? '' : date.toISOString()
}

const withoutFraction = (text: string): string => (text.endsWith('.000') ? text.slice(0, -4) : text)

function formatInstant(ms: number, offsetMinutes: number): string {
  const seconds = withoutFraction(isoUtc(ms + offsetMinutes * minuteMs).slice(0, -1))
  if (offsetMinutes === 0) return `${seconds}Z`
  const total = Math.abs(offsetMinutes)
  const pad = (part: number): string => String(part).padStart(2, '0')
  return `${seconds}${offsetMinutes < 0 ? '-' : '+'}${pad(Math.floor(total / 60))}:${pad(total % 60)}`
}

function formatDuration(ms: number): string {
  const seconds = Math.abs(ms) / 1000
  const parts = [
    [Math.floor(seconds / 3600), 'H'],
    [Math.floor(seconds / 60) % 60, 'M'],
    [seconds % 60, 'S'],
  ] as const
  const text = parts.map(([value, unit]) => (value === 0 ? '' : `${value}${unit}`)).join('')
  return `${ms < 0 ? '-' : ''}PT${text === '' ? '0S' : text}`
}

const formatNumber = (value: number): string => {
  if (Number.isFinite(value) || Number.isNaN(value)) return String(value)
  return value > 0 ? 'INF' : '-INF'
}

/** A value in OData's notation, as in JSON. */
function formatScalar(value: Scalar, type: ValueType, memberNames: ReadonlyMap<number, string>): string {
  if (isInstant(value)) return formatInstant(value.ms, value.offsetMinutes)
  const number = toNumber(value)
  switch (type.family) {
    case 'number':
      return formatNumber(number)
    case 'enum':
      return memberNames.get(number) ?? formatNumber(number)
    case 'date':
      return isoUtc(number).slice(0, 10)
    case 'timeOfDay':
      return withoutFraction(isoUtc(number).slice(11, -1))
    case 'duration':
      return formatDuration(number)
    default:
      return String(value)
  }
}

function toNumericType(value: number, type: ValueType): number {
  return isInteger(type) ? Math.trunc(value) : value
}

/**
 * The conversion of a cast (OData URL conventions 5.1.1.10.1): anything to its text, text to anything that it spells,
 * numbers to numbers; null where the text spells no such value.
 */
export function castScalar(from: ValueType, to: ValueType, index: ModelIndex): (value: Scalar) => Scalar {
  const info = index.findType(from.name)
  const members = info?.kind === 'enum' ? info.declaration.members : []
  const memberNames = new Map(members.map(({ name, value }) => [value, name]))
  const read = scalarReader(to, index)
  const parse = (text: string): Scalar => {
    if (to.family === 'boolean') return text === 'true' || text === 'false' ? text === 'true' : null
    const value = read(text)
    return typeof value === 'number' && to.family === 'number' ? toNumericType(value, to) : value
  }
  return (value) => {
    if (value === null) return null
    if (to.family === 'string') return formatScalar(value, from, memberNames)
    if (from.family === 'string') return typeof value === 'string' ? parse(value) : null
    return to.family === 'number' ? toNumericType(toNumber(value), to) : value
  }
}
