import type { ModelIndex } from './model-index.ts'
import { parseDate, parseDuration, parseInstant, parseTimeOfDay, type Scalar } from './scalar.ts'
import type { ValueType } from './value-type.ts'

/** Reads a property's JSON value; null for null, absent and unreadable values alike. */
export type ReadScalar = (raw: unknown) => Scalar

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

/** The value of a number in OData's spelling, as an IEEE double. */
export function parseNumber(text: string): number | undefined {
  if (text === 'INF') return Infinity
  if (text === '-INF') return -Infinity
  if (text === 'NaN') return NaN
  const value = Number(text)
  return Number.isNaN(value) ? undefined : value
}

/** The number of an enumeration value such as `YearGroup`, `Solid,Yellow` or `2`. */
export function parseEnum(
  members: readonly string[],
  valueByMember: ReadonlyMap<string, number>,
): number | undefined {
  let value = 0
  for (const member of members) {
    const one = valueByMember.get(member.trim()) ?? (/^[+-]?\d+$/.test(member) ? Number(member) : undefined)
    if (one === undefined) return undefined
    value |= one
  }
  return value
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
