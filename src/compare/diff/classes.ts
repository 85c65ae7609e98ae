import { isGuid } from '../../odata/index.ts'
import { isMembers, memberOf, type Members, momentOf, nanosBetween, ZERO_GUID } from './values.ts'

/** How the strings of a member are classified. `text` marks text that people wrote, which is never parsed as a GUID or a time. */
export type TextForm = 'any' | 'text'

/** Returns the class of a value, such as `length:10-20`, which does not reveal the value. The number of classes is bounded. */
function classOf(value: unknown, form: TextForm = 'any'): string {
  if (value === undefined) return 'missing'
  if (value === null) return 'null'
  if (typeof value === 'string') return form === 'text' ? lengthClass(value) : textClass(value)
  if (typeof value === 'number') return numberClass(value)
  if (typeof value === 'boolean') return 'boolean'
  return Array.isArray(value) ? 'list' : 'object'
}

function textClass(text: string): string {
  if (isGuid(text)) return text === ZERO_GUID ? 'guid:zero' : 'guid'
  return momentOf(text) === undefined ? lengthClass(text) : 'time'
}

const lengths = bounds([0, 9, 20, 50, 100, 255, 1_000])
const numbers = bounds([0, 5, 15, 30, 60, 1_000])
const counts = bounds([0, 1, 2, 9, 99])

function bounds(uppers: readonly number[]): readonly { readonly upTo: number; readonly name: string }[] {
  return [...uppers, Number.POSITIVE_INFINITY].map((upTo, index) => {
    const from = (uppers[index - 1] ?? -1) + 1
    return {
      upTo,
      name: upTo === Number.POSITIVE_INFINITY ? `${from}+` : from === upTo ? `${from}` : `${from}-${upTo}`,
    }
  })
}

const nameIn = (classes: ReturnType<typeof bounds>, value: number): string =>
  classes.find(({ upTo }) => value <= upTo)?.name ?? ''

function lengthClass(text: string): string {
  return `length:${nameIn(lengths, text.length)}`
}

function numberClass(value: number): string {
  if (!Number.isInteger(value)) return 'number:fraction'
  return value < 0 ? 'number:negative' : `number:${nameIn(numbers, value)}`
}

export function countClass(count: number): string {
  return `count:${nameIn(counts, count)}`
}

type CodeClass = 'code:present' | 'code:absent' | 'code:neither' | 'code:both'

/** Returns the class of a mark's attendance code, derived from `Present` and `Absent`, or `undefined` if one of them is not a boolean. */
export function codeClassOf(mark: Members): CodeClass | undefined {
  const present = memberOf(mark, 'Present')
  const absent = memberOf(mark, 'Absent')
  if (typeof present !== 'boolean' || typeof absent !== 'boolean') return undefined
  if (present) return absent ? 'code:both' : 'code:present'
  return absent ? 'code:absent' : 'code:neither'
}

/**
 * Returns the classes of two different values of one member. If one change turns the value of V2 into the value of V3, the class of V3
 * names the change, such as `trimmed` or `time:+3600s`.
 */
export function classesOf(
  v2: unknown,
  v3: unknown,
  form: TextForm = 'any',
): readonly [v2: string, v3: string] {
  const classes = [classOf(v2, form), classOf(v3, form)] as const
  if (typeof v2 !== 'string' || typeof v3 !== 'string') return classes
  const [from, to] = form === 'any' ? [momentOf(v2), momentOf(v3)] : []
  if (from !== undefined && to !== undefined) return ['time', shiftClass(nanosBetween(from, to) / 1e9)]
  const relation = classes.every((name) => name.startsWith('length:')) ? relationOf(v2, v3) : undefined
  return relation === undefined ? classes : [classes[0], `${classes[1]} ${relation}`]
}

const QUARTER_SECONDS = 900
const DAY_SECONDS = 86_400

/**
 * Returns the class of a shift in time. The class shows the exact shift for one day, and for a multiple of 15 minutes up to 14 hours (a
 * change of time zone). For any other shift the class is a range, which reveals no time.
 */
function shiftClass(seconds: number): string {
  const sign = seconds < 0 ? '-' : '+'
  const size = Math.abs(seconds)
  const isZone = size % QUARTER_SECONDS === 0 && size <= 14 * 3_600
  if (isZone || size === DAY_SECONDS) return `time:${sign}${size}s`
  return `time:${sign}${shifts.find(({ under }) => size < under)?.name ?? '>7d'}`
}

const shifts = [
  { under: 1, name: '<1s' },
  { under: 60, name: '1-60s' },
  { under: 3_600, name: '1-60min' },
  { under: DAY_SECONDS, name: '1-24h' },
  { under: 7 * DAY_SECONDS, name: '1-7d' },
]

/** Returns the change that turns the text of V2 into the text of V3, or `undefined` if no single change does so. */
function relationOf(v2: string, v3: string): string | undefined {
  if (v2.trim() === v3.trim()) return 'trimmed'
  if (v2.normalize('NFC') === v3.normalize('NFC')) return 'normalised'
  if (v2.toLowerCase() === v3.toLowerCase()) return 'case'
  if (v2.replaceAll(/\s+/g, ' ').trim() === v3.replaceAll(/\s+/g, ' ').trim()) return 'spaces'
  if (v3 !== '' && v2.startsWith(v3)) return 'cut'
  return v2 !== '' && v3.startsWith(v2) ? 'longer' : undefined
}

export function elementClass(value: unknown): string {
  return isMembers(value) ? 'element' : classOf(value)
}
