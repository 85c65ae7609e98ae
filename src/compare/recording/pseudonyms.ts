import { createHmac } from 'node:crypto'

import { permuteText } from './permute-text.ts'

/** Replaces values under a key. Each of them keeps the length in bytes, so that framing and offsets stay as they were. */
export interface Pseudonyms {
  /** A text: embedded guids and dates as such, all other letters and digits permuted. */
  readonly text: (value: string) => string
  /** As `text`, word by word; words of `known` (lower case) stay. */
  readonly words: (value: string, known: ReadonlySet<string>) => string
  /** The lexeme of a number of JSON: the same form, with no zero at its front. An int32 stays one. */
  readonly number: (lexeme: string) => string
}

/** With hyphens, or as its digits alone, which V2 reads as well. */
const GUID =
  /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?<![0-9a-z])[0-9a-f]{32}(?![0-9a-z])/gi
const DIGITS = /^(.{8})(.{4})(.{4})(.{4})(.{12})$/
/** A calendar date, alone or with a time, as text or in a URL; times of day and offsets stay. */
const DATE =
  /(?<!\d)(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?!\d)(?:T\d\d(?::|%3A)\d\d(?:(?::|%3A)\d\d(?:\.\d{1,12})?)?(?:Z|(?:[+-]|%2B|%2D)\d\d(?::|%3A)?\d\d)?)?/gi
const NIL = '00000000-0000-0000-0000-000000000000'
const WEEK_MS = 604_800_000
/** Dates move back by 1 to 520 weeks: days of the week stay. */
const WEEKS = 520
const INT32 = /^-?\d{1,10}$/

/** Creates the pseudonyms of a key of 32 bytes. The same key gives the same pseudonyms. */
export function createPseudonyms(key: Uint8Array): Pseudonyms {
  const keyOf = (purpose: string): Buffer =>
    createHmac('sha256', key).update(`markbridge ${purpose}`).digest()
  const [guidKey, textKey, dateKey] = [keyOf('guid'), keyOf('text'), keyOf('dates')]
  const shiftMs = (1 + (dateKey.readUInt32BE(0) % WEEKS)) * WEEK_MS
  const known = new Map<string, string>()
  const guid = (value: string): string => {
    const found = known.get(value)
    if (found !== undefined) return found
    const mapped = value.includes('-')
      ? mapGuid(guidKey, value)
      : mapGuid(guidKey, value.replace(DIGITS, '$1-$2-$3-$4-$5')).replaceAll('-', '')
    if (known.size < MAX_KNOWN) known.set(value, mapped)
    return mapped
  }
  const date = (value: string): string => {
    const day = value.slice(0, 10)
    const ms = Date.parse(`${day}T00:00:00Z`)
    // 30 February is a date by its form alone.
    const isDay = !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(day)
    const shifted = isDay ? new Date(ms - shiftMs).toISOString().slice(0, 10) : permuteText(textKey, day)
    return shifted + value.slice(10)
  }
  /** `rest` maps all that is neither guid nor date, as one text with gaps. */
  const around = (value: string, rest: (gaps: readonly string[]) => readonly string[]): string => {
    const spans = [...value.matchAll(GUID), ...value.matchAll(DATE)]
      .map(({ 0: text, index }) => ({ text, index }))
      .sort((one, other) => one.index - other.index)
    const gaps: string[] = []
    const kept: string[] = []
    let from = 0
    for (const { text, index } of spans) {
      // Digits of a guid may look like a date.
      if (index < from) continue
      gaps.push(value.slice(from, index))
      kept.push(text[4] === '-' ? date(text) : guid(text))
      from = index + text.length
    }
    gaps.push(value.slice(from))
    return rest(gaps)
      .map((gap, n) => gap + (kept[n] ?? ''))
      .join('')
  }
  const words = new Map<string, string>()
  const mapWord = (word: string, kept: ReadonlySet<string>): string => {
    if (kept.has(word.toLowerCase())) return word
    const found = words.get(word) ?? permuteText(textKey, word)
    if (words.size < MAX_KNOWN) words.set(word, found)
    return found
  }
  return {
    text: (value) =>
      around(value, (gaps) => {
        // Nothing that is permuted is a line end of this kind, so the gaps are found again.
        const mapped = permuteText(textKey, gaps.join('\u0000'))
        let at = 0
        return gaps.map((gap) => {
          const own = mapped.slice(at, at + gap.length)
          at += gap.length + 1
          return own
        })
      }),
    words: (value, kept) =>
      around(value, (gaps) =>
        gaps.map((gap) =>
          // An escaped byte of a URL is not a word.
          gap.replaceAll(/%(?:25)*[0-9a-f]{2}|[\p{L}\p{Nd}]+/giu, (word) =>
            word.startsWith('%') ? word : mapWord(word, kept),
          ),
        ),
      ),
    number: (lexeme) => {
      let mapped = lexeme
      do mapped = mapNumber(textKey, mapped)
      while (isInt32(mapped) !== isInt32(lexeme))
      return mapped
    },
  }
}

/** Guids and words that are remembered; all others are computed each time. */
const MAX_KNOWN = 50_000

/** Version and variant stay, and so does the case of the letters: upper, lower or mixed. */
function mapGuid(key: Uint8Array, value: string): string {
  const plain = value.toLowerCase()
  if (plain === NIL) return value
  const hex = createHmac('sha256', key).update(plain).digest('hex')
  const fixed = new Set([14, 19])
  let at = 0
  const mapped = Array.from(plain, (character, n) => {
    if (character === '-') return '-'
    const own = hex[at] ?? '0'
    at += 1
    return fixed.has(n) ? character : own
  }).join('')
  if (value === plain) return mapped
  if (value === value.toUpperCase()) return mapped.toUpperCase()
  const cases = createHmac('sha256', key).update(value).digest('hex')
  return Array.from(mapped, (character, n) =>
    Number.parseInt(cases[n] ?? '0', 16) % 2 === 0 ? character : character.toUpperCase(),
  ).join('')
}

const isInt32 = (lexeme: string): boolean => INT32.test(lexeme) && Number(lexeme) === (Number(lexeme) | 0)

/** A permutation of the lexemes of one form: of two digits at the front none is 0, and exponents stay. */
function mapNumber(key: Uint8Array, lexeme: string): string {
  const [, sign = '', digits = '', rest = ''] = /^(-?)([\d.]*)(.*)$/.exec(lexeme) ?? []
  if (digits.length < 2 || digits.startsWith('0')) return sign + permuteTail(key, digits) + rest
  let mapped = digits
  do mapped = permuteText(key, mapped)
  while (mapped.startsWith('0'))
  return sign + mapped + rest
}

/** `0.25` begins with a zero that stays. */
const permuteTail = (key: Uint8Array, digits: string): string =>
  digits.startsWith('0') ? `0${permuteText(key, digits.slice(1))}` : permuteText(key, digits)
