import { RE2JS, RE2JSException, RE2JSSyntaxException } from 're2js'

import { QueryError } from '../query-error.ts'

const maxLength = 500
/** The engine's time for a text grows with the size of the program, which counted repetitions multiply. */
const maxSize = 1000

/**
 * Compiles the pattern of `matchesPattern` into a test that takes linear time whatever the pattern: a backtracking
 * engine would let one query stop the service.
 *
 * @param origin - position of the pattern in the query, for the error
 * @throws QueryError for syntax that is wrong or not supported, and for a pattern that is too large
 */
export function compilePattern(pattern: string, origin: number): (text: string) => boolean {
  if (pattern.length > maxLength)
    throw new QueryError(`The pattern is longer than ${maxLength} characters`, origin)
  const { source, size } = translatePattern(pattern, origin)
  if (size > maxSize) throw new QueryError('The pattern is too large', origin)
  try {
    const compiled = RE2JS.compile(source)
    return (text) => compiled.test(text)
  } catch (cause) {
    if (!(cause instanceof RE2JSException)) throw cause
    const reason = cause instanceof RE2JSSyntaxException ? `: ${cause.getDescription()}` : ''
    throw new QueryError(`The pattern cannot be used${reason}`, origin)
  }
}

/** A pattern in the syntax of RE2, and an upper bound of the instructions that it compiles to. */
interface TranslatedPattern {
  readonly source: string
  readonly size: number
}

// WhiteSpace and LineTerminator of ECMAScript; those of RE2 are ASCII. Each text is the inside of a class.
const blanks = String.raw`\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`
const notBlanks = String.raw`\x{0}-\x{8}\x{e}-\x{1f}!-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}`
const notLineEnd = String.raw`[^\n\r\x{2028}\x{2029}]`
const any = String.raw`\x{0}-\x{10ffff}`

const escape = String.raw`\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[^]?)`
const term = new RegExp(String.raw`${escape}|\[\^?|\((?:\?[^]?)?|[*+?]\??|\{\d+(?:,\d*)?\}\??|[^]`, 'guy')
const classTerm = new RegExp(String.raw`${escape}|[^]`, 'guy')
/** Escapes that RE2 reads as ECMAScript does, inside a class and outside. */
const sameEscape = /^\\(?:[dDwWtnvfr$^\\.*+?()[\]{}|/-]|x..)$/

/** Translates a pattern of ECMAScript into one of RE2: differences of the syntax are replaced or refused. */
class Translation {
  readonly #pattern: string
  readonly #origin: number
  #at = 0
  /** The size of each open group so far. */
  readonly #sizes = [0]
  /** The size of the last item, which a quantifier multiplies. */
  #last = 0

  constructor(pattern: string, origin: number) {
    this.#pattern = pattern
    this.#origin = origin
  }

  translate(): TranslatedPattern {
    let source = ''
    for (let text = this.#next(term); text !== ''; text = this.#next(term)) source += this.#term(text)
    return { source, size: this.#sizes.reduce((sum, size) => sum + size) }
  }

  #next(pattern: RegExp): string {
    pattern.lastIndex = this.#at
    const text = pattern.exec(this.#pattern)?.[0] ?? ''
    this.#at += text.length
    return text
  }

  #fail(message: string, length: number): never {
    const at = this.#at - length
    throw new QueryError(`The pattern cannot be used: ${message} at its character ${at}`, this.#origin)
  }

  #add(size: number): void {
    this.#last = size
    this.#sizes.push((this.#sizes.pop() ?? 0) + size)
  }

  #term(text: string): string {
    if (/^(?:[*+?]|\{\d)/.test(text)) return this.#quantifier(text)
    if (text.startsWith('(')) return this.#open(text)
    // The engine reports a group that was never opened.
    if (text === ')') this.#add((this.#sizes.length > 1 ? (this.#sizes.pop() ?? 0) : 0) + 2)
    else this.#add(1)
    if (text.startsWith('[')) return this.#class(text)
    if (/^\\[bB]$/.test(text)) return text
    if (text.startsWith('\\')) return this.#escape(text, (set) => `[${set}]`)
    return text === '.' ? notLineEnd : text
  }

  /** The engine copies an item for each time that it is counted, and needs a jump for each copy that may be left out. */
  #quantifier(text: string): string {
    const [low = 0, high = low] = (text.match(/\d+/g) ?? []).map(Number)
    const item = this.#last
    this.#add(item * (Math.max(low, high, 1) - 1) + Math.max(1, 1 + high - low))
    this.#last += item
    return text
  }

  #open(text: string): string {
    if (text !== '(' && text !== '(?:') this.#fail('only plain and (?:…) groups', text.length - 1)
    this.#sizes.push(0)
    return text
  }

  #class(open: string): string {
    let inner = ''
    for (let text = this.#next(classTerm); text !== ']'; text = this.#next(classTerm)) {
      if (text === '') this.#fail('"[" without "]"', 0)
      if (text === '[') inner += '\\['
      else if (text === '\\b') inner += '\\x08'
      else inner += text.startsWith('\\') ? this.#escape(text, (set) => set) : text
    }
    if (inner !== '') return `${open}${inner}]`
    return open === '[' ? `[^${any}]` : `[${any}]`
  }

  #escape(text: string, toSet: (set: string) => string): string {
    if (text === '\\s') return toSet(blanks)
    if (text === '\\S') return toSet(notBlanks)
    if (text === '\\0') return '\\x00'
    if (/^\\u./.test(text)) return `\\x{${text.slice(2)}}`
    if (sameEscape.test(text)) return text
    this.#fail('an escape that is not supported', text.length - 1)
  }
}

/**
 * Translates a pattern of ECMAScript without look-around, back-references and named groups, which cannot be matched in linear
 * time or are not needed for a yes-or-no match.
 *
 * @param origin - position of the pattern in the query, for the error
 * @throws QueryError
 */
export function translatePattern(pattern: string, origin: number): TranslatedPattern {
  return new Translation(pattern, origin).translate()
}
