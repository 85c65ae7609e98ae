import { isInstant, type Scalar } from '../typed/scalar.ts'
import type { CallNode } from '../typed/typed-ast.ts'
import { toNumber } from './compare-scalars.ts'
import { compilePattern } from './pattern.ts'

/** A built-in function on arguments that are not null and of the families that the check let through. */
type Implementation = (first: Scalar, second?: Scalar, third?: Scalar) => Scalar

const minuteMs = 60_000
const dayMs = 86_400_000

const surrogate = /[\ud800-\udfff]/

/** The characters of a string are its code points. */
const lengthOf = (text: string): number => (surrogate.test(text) ? Array.from(text).length : text.length)

function indexOf(text: string, part: string): number {
  const index = text.indexOf(part)
  return index <= 0 ? index : lengthOf(text.slice(0, index))
}

/** A negative start counts from the end (OData URL conventions 5.1.1.5.7). */
function substring(text: string, start: number, length = Infinity): string | null {
  if (length < 0) return null
  const characters = surrogate.test(text) ? Array.from(text) : text
  const from = start < 0 ? Math.max(0, characters.length + start) : start
  const part = characters.slice(from, from + length)
  return typeof part === 'string' ? part : part.join('')
}

const asText = (value: Scalar | undefined): string => (typeof value === 'string' ? value : '')

const onStrings =
  (apply: (first: string, second: string) => Scalar): Implementation =>
  (first, second) =>
    apply(asText(first), asText(second))

/** Milliseconds of the clock and calendar that a value was written in. */
const localMs = (value: Scalar): number =>
  isInstant(value) ? value.ms + value.offsetMinutes * minuteMs : toNumber(value)

const sinceMidnight = (value: Scalar): number => {
  const ms = localMs(value)
  return ms - Math.floor(ms / dayMs) * dayMs
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
  fractionalseconds: onTime((ms) => (ms % 1000) / 1000),
  totalseconds: onNumber((ms) => ms / 1000),
  date: (value) => Math.floor(localMs(value) / dayMs) * dayMs,
  time: onTime((ms) => ms),
  totaloffsetminutes: (value) => (isInstant(value) ? value.offsetMinutes : 0),
  // The midpoint goes away from zero (OData URL conventions 5.1.1.9.1).
  round: onNumber((value) => Math.sign(value) * Math.round(Math.abs(value))),
  floor: onNumber(Math.floor),
  ceiling: onNumber(Math.ceil),
}

/** The function of a call node, ready for its arguments; null in, null out (OData URL conventions 5.1.1.4). */
export function implementCall(node: CallNode): (...values: readonly Scalar[]) => Scalar {
  const implementation = node.name === 'matchesPattern' ? matchPattern(node) : implementations[node.name]
  return (...values) => {
    const [first = null, second, third] = values
    return implementation === undefined || values.includes(null) ? null : implementation(first, second, third)
  }
}

function matchPattern({ arguments: [, pattern] }: CallNode): Implementation | undefined {
  if (pattern?.kind !== 'constant' || typeof pattern.value !== 'string') return undefined
  const matches = compilePattern(pattern.value, pattern.position)
  return (text) => matches(asText(text))
}
