import { AdapterError } from '../errors.ts'

/** Reads one value of foreign JSON; throws an `AdapterError` that names `at`, the path to it, and never its content. */
export type Reader<Value> = (value: unknown, at: string) => Value

/** The members of a JSON object. */
export type Field = Readonly<Record<string, unknown>>

const MAX_TEXT = 2000

const expected = (at: string, what: string): AdapterError =>
  new AdapterError('ADP_USAGE', `${at === '' ? 'The document' : `"${at}"`} should be ${what}.`)

const isDay = (text: string): boolean => {
  const time = Date.parse(`${text}T00:00:00Z`)
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text)
}

/** Readers of single values. */
export const readers = {
  text: (value: unknown, at: string): string => {
    if (typeof value === 'string' && value.length <= MAX_TEXT) return value
    throw expected(at, `a text of at most ${MAX_TEXT} characters`)
  },
  count: (value: unknown, at: string): number => {
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value
    throw expected(at, 'a whole number of zero or more')
  },
  flag: (value: unknown, at: string): boolean => {
    if (typeof value === 'boolean') return value
    throw expected(at, 'true or false')
  },
  /** `YYYY-MM-DD`, a day that the calendar has. */
  day: (value: unknown, at: string): string => {
    if (typeof value === 'string' && /^\d{4}-\d\d-\d\d$/.test(value) && isDay(value)) return value
    throw expected(at, 'a day, YYYY-MM-DD')
  },
  /** ISO 8601 with an offset. */
  instant: (value: unknown, at: string): string => {
    const form = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/
    if (typeof value === 'string' && form.test(value) && !Number.isNaN(Date.parse(value))) return value
    throw expected(at, 'an instant, such as 2026-11-22T08:55:00Z')
  },
} satisfies Record<string, Reader<unknown>>

/** Reads one of a few values. */
export function oneOf<const Value extends string | number>(values: readonly Value[]): Reader<Value> {
  return (value, at) => {
    const found = values.find((one) => one === value)
    if (found !== undefined) return found
    throw expected(at, values.map((one) => JSON.stringify(one)).join(', '))
  }
}

/** Reads a list of at most `longest` elements. */
export function listOf<Element>(element: Reader<Element>, longest: number): Reader<readonly Element[]> {
  return (value, at) => {
    if (!Array.isArray(value) || value.length > longest)
      throw expected(at, `a list of at most ${longest} elements`)
    return value.map((one: unknown, index) => element(one, `${at}[${index}]`))
  }
}

/** Reads the members that have a reader; every one is required, others are left out. */
export function objectOf<Shape extends object>(members: {
  readonly [Name in keyof Shape]: Reader<Shape[Name]>
}): Reader<Shape> {
  return (value, at) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw expected(at, 'an object')
    const given: Field = { ...value }
    const entries = Object.entries<Reader<unknown>>(members).map(([name, read]) => {
      const path = at === '' ? name : `${at}.${name}`
      // A member named like one of Object.prototype is given only where the object itself has it.
      if (!Object.hasOwn(given, name)) throw new AdapterError('ADP_USAGE', `"${path}" is missing.`)
      return [name, read(given[name], path)] as const
    })
    return Object.fromEntries(entries) as Shape
  }
}
