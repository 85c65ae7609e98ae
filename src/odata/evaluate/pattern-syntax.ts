import { QueryError } from '../query-error.ts'

/** A set of UTF-16 code units, as inclusive ranges. */
export interface CharacterSet {
  readonly ranges: readonly (readonly [low: number, high: number])[]
  readonly negated: boolean
}

/** A regular expression as a tree. Captures do not matter to a yes-or-no match, so groups leave no node. */
export type PatternNode =
  | { readonly kind: 'set'; readonly set: CharacterSet }
  | { readonly kind: 'start' | 'end' }
  | { readonly kind: 'sequence' | 'choice'; readonly items: readonly PatternNode[] }
  | { readonly kind: 'repeat'; readonly item: PatternNode; readonly min: number; readonly max: number }

const maxLength = 500
const maxDepth = 20
const quantifier = /[*+?]|\{(\d{1,3})(?:(,)(\d{1,3})?)?\}/y
const hexEscape = /\\(?:x([0-9a-f]{2})|u([0-9a-f]{4}))/iy
const syntaxCharacters = '^$\\.*+?()[]{}|/-'

type Ranges = CharacterSet['ranges']

const digits: Ranges = [[0x30, 0x39]]
const words: Ranges = [...digits, [0x41, 0x5a], [0x5f, 0x5f], [0x61, 0x7a]]
// ECMAScript WhiteSpace and LineTerminator
const blanks: Ranges = [
  [0x09, 0x0d],
  [0x20, 0x20],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
]
const lineEnds: Ranges = [
  [0x0a, 0x0a],
  [0x0d, 0x0d],
  [0x2028, 0x2029],
]

const setOf = (ranges: Ranges, negated = false): CharacterSet => ({ ranges, negated })

const complement = (ranges: Ranges): Ranges => {
  const result: [number, number][] = []
  let next = 0
  for (const [low, high] of ranges) {
    if (low > next) result.push([next, low - 1])
    next = high + 1
  }
  return [...result, [next, 0xffff]]
}

const classEscapes: Readonly<Record<string, Ranges>> = {
  d: digits,
  w: words,
  s: blanks,
  D: complement(digits),
  W: complement(words),
  S: complement(blanks),
}

const controlEscapes: Readonly<Record<string, number>> = {
  t: 0x09,
  n: 0x0a,
  v: 0x0b,
  f: 0x0c,
  r: 0x0d,
  0: 0x00,
}

/** Reads one pattern from left to right. */
class PatternReader {
  readonly #text: string
  readonly #origin: number
  #at = 0
  #depth = 0

  constructor(text: string, origin: number) {
    this.#text = text
    this.#origin = origin
  }

  fail(message: string): never {
    throw new QueryError(`The pattern cannot be used: ${message} at its character ${this.#at}`, this.#origin)
  }

  pattern(): PatternNode {
    if (this.#text.length > maxLength) this.fail(`more than ${maxLength} characters`)
    const node = this.#choice()
    if (this.#at < this.#text.length) this.fail('")" without "("')
    return node
  }

  #peek(): string {
    return this.#text.charAt(this.#at)
  }

  #eat(token: string): boolean {
    if (!this.#text.startsWith(token, this.#at)) return false
    this.#at += token.length
    return true
  }

  #choice(): PatternNode {
    const items = [this.#sequence()]
    while (this.#eat('|')) items.push(this.#sequence())
    return { kind: 'choice', items }
  }

  #sequence(): PatternNode {
    const items: PatternNode[] = []
    for (let next = this.#peek(); next !== '' && next !== '|' && next !== ')'; next = this.#peek()) {
      items.push(this.#term())
    }
    return { kind: 'sequence', items }
  }

  #term(): PatternNode {
    if (this.#eat('^')) return { kind: 'start' }
    if (this.#eat('$')) return { kind: 'end' }
    const item = this.#atom()
    quantifier.lastIndex = this.#at
    const match = quantifier.exec(this.#text)
    if (match === null) return item
    const [whole, low, comma, high] = match
    const min = low === undefined ? (whole === '+' ? 1 : 0) : Number(low)
    const exact = whole === '?' ? 1 : low === undefined ? Infinity : min
    const max = comma === undefined ? exact : high === undefined ? Infinity : Number(high)
    if (max < min) this.fail('a quantifier whose bounds are in the wrong order')
    this.#at += whole.length
    // Lazy or greedy, a yes-or-no match is the same.
    this.#eat('?')
    return { kind: 'repeat', item, min, max }
  }

  #atom(): PatternNode {
    if (this.#eat('(')) return this.#group()
    if (this.#eat('[')) return { kind: 'set', set: this.#characterClass() }
    if (this.#eat('.')) return { kind: 'set', set: setOf(lineEnds, true) }
    if (this.#peek() === '\\') return { kind: 'set', set: setOf(this.#escape()) }
    if ('*+?{'.includes(this.#peek())) this.fail('a quantifier without an item')
    return { kind: 'set', set: setOf(this.#character()) }
  }

  #group(): PatternNode {
    if (this.#eat('?') && !this.#eat(':')) this.fail('only plain and (?:…) groups')
    if (this.#depth >= maxDepth) this.fail('groups too deep')
    this.#depth += 1
    const node = this.#choice()
    this.#depth -= 1
    if (!this.#eat(')')) this.fail('"(" without ")"')
    return node
  }

  #character(): Ranges {
    const code = this.#text.charCodeAt(this.#at)
    this.#at += 1
    return [[code, code]]
  }

  #escape(): Ranges {
    hexEscape.lastIndex = this.#at
    const hex = hexEscape.exec(this.#text)
    if (hex !== null) {
      this.#at += hex[0].length
      const code = Number.parseInt(hex[1] ?? hex[2] ?? '', 16)
      return [[code, code]]
    }
    this.#at += 1
    const name = this.#peek()
    const named = classEscapes[name]
    const control = controlEscapes[name]
    if (name === '' || (named === undefined && control === undefined && !syntaxCharacters.includes(name))) {
      this.fail('an escape that is not supported')
    }
    if (named === undefined && control === undefined) return this.#character()
    this.#at += 1
    return named ?? [[control ?? 0, control ?? 0]]
  }

  #characterClass(): CharacterSet {
    const negated = this.#eat('^')
    const ranges: (readonly [number, number])[] = []
    while (!this.#eat(']')) {
      if (this.#peek() === '') this.fail('"[" without "]"')
      const first = this.#classAtom()
      // A hyphen before the closing bracket is a hyphen.
      const isRange = this.#peek() === '-' && this.#text.charAt(this.#at + 1) !== ']'
      if (!isRange) {
        ranges.push(...first)
        continue
      }
      this.#at += 1
      ranges.push(this.#range(first, this.#classAtom()))
    }
    return setOf(ranges, negated)
  }

  #classAtom(): Ranges {
    return this.#peek() === '\\' ? this.#escape() : this.#character()
  }

  #range(first: Ranges, last: Ranges): readonly [number, number] {
    const low = first[0]?.[0] ?? 0
    const high = last[0]?.[1] ?? 0
    const isSingle = (ranges: Ranges): boolean => ranges.length === 1 && ranges[0]?.[0] === ranges[0]?.[1]
    if (!isSingle(first) || !isSingle(last) || high < low) this.fail('a range that is not one')
    return [low, high]
  }
}

/**
 * Reads a regular expression: the part of ECMAScript's that can be matched in linear time, so no back-references,
 * look-around, word boundaries or named groups.
 *
 * @param origin - position of the pattern in the query, for the error
 * @throws QueryError
 */
export function parsePattern(text: string, origin: number): PatternNode {
  return new PatternReader(text, origin).pattern()
}
