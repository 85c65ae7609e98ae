import { defaultBatchLimits } from '../limits.ts'

export interface JsonFault {
  readonly message: string
  /** True if the text may be JSON but exceeds a limit. */
  readonly isLimit?: true
  /** The position in the text, in characters from 0. */
  readonly position: number
}

const QUOTE = 0x22
const APOSTROPHE = 0x27
const BACKSLASH = 0x5c
const MAX_DEPTH = 64

export interface JsonLimits {
  /** Maximum number of members and array elements, at all levels. */
  readonly maxMembers: number
  readonly maxEscapes: number
}

// Matches a number (RFC 8259 6).
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  "'": "'",
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
}

/**
 * Reads JSON text (RFC 8259) value by value. Unlike `JSON.parse`, it shows how a number is written, names that occur twice, and the raw
 * text of a value, and accepts strings in single quotes (batch-wire F30, service.md 4). A method that finds a fault stores it in `fault`
 * and returns false or `undefined`. Methods do not throw, because a batch may have thousands of faulty records.
 */
export class JsonReader {
  readonly text: string
  position = 0
  fault: JsonFault | undefined = undefined
  private readonly limits: JsonLimits
  private members = 0
  private escapes = 0

  constructor(text: string, limits: JsonLimits = defaultBatchLimits) {
    this.text = text
    this.limits = limits
    if (this.peek() === 0xfeff) this.position += 1 // Skips a byte order mark (batch-wire F17, F20).
  }

  /** Skips white space and returns the code of the next character, or NaN at the end. */
  peek(): number {
    let code = this.text.charCodeAt(this.position)
    while (code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09) {
      this.position += 1
      code = this.text.charCodeAt(this.position)
    }
    return code
  }

  /** Skips white space and consumes the next character if it has this code. Otherwise returns false. */
  take(code: number): boolean {
    if (this.peek() !== code) return false
    this.position += 1
    return true
  }

  /** Stores a fault unless a fault is stored already. Always returns false, so that a caller can return the result. */
  fail(message: string, position = this.position): boolean {
    this.fault ??= { message, position }
    return false
  }

  /** Counts a member or array element. Above the limit, stores a fault and returns false. */
  countMember(): boolean {
    this.members += 1
    if (this.members <= this.limits.maxMembers) return true
    return this.exceed(`The record has more than ${this.limits.maxMembers} members and array elements`)
  }

  atString(): boolean {
    const code = this.peek()
    return code === QUOTE || code === APOSTROPHE
  }

  /** Returns the next `length` characters without checking or consuming them if double quotes enclose them, otherwise `undefined`. */
  peekQuoted(length: number): string | undefined {
    if (this.peek() !== QUOTE || this.text.charCodeAt(this.position + length + 1) !== QUOTE) return undefined
    return this.text.slice(this.position + 1, this.position + length + 1)
  }

  readString(): string | undefined {
    const quote = this.peek()
    if (quote !== QUOTE && quote !== APOSTROPHE) return this.failText('a string is expected')
    const start = this.position
    const text = this.text
    let read = ''
    let run = start + 1
    for (let at = run; at < text.length; at += 1) {
      const code = text.charCodeAt(at)
      if (code === quote) {
        this.position = at + 1
        return read + text.slice(run, at)
      }
      if (code < 0x20) return this.failText('a string has a control character', at)
      if (code !== BACKSLASH) continue
      const escape = this.readEscape(at)
      if (escape === undefined) return undefined
      read += text.slice(run, at) + escape.text
      run = at + escape.length
      at = run - 1
    }
    return this.failText('a string is not closed', start)
  }

  readRaw(): string | undefined {
    this.peek()
    const start = this.position
    if (!this.skipValue(0)) return undefined
    return this.text.slice(start, this.position)
  }

  /** Consumes the next value if it is exactly `word`. Otherwise returns false. */
  takeWord(word: string): boolean {
    this.peek()
    if (!this.text.startsWith(word, this.position) || this.isWordCharacter(this.position + word.length))
      return false
    this.position += word.length
    return true
  }

  readNumber(): string | undefined {
    this.peek()
    NUMBER.lastIndex = this.position
    const lexeme = NUMBER.exec(this.text)?.[0]
    if (lexeme === undefined || this.isWordCharacter(this.position + lexeme.length))
      return this.failText('a value is expected')
    this.position += lexeme.length
    return lexeme
  }

  private isWordCharacter(at: number): boolean {
    const code = this.text.charCodeAt(at) | 0x20
    return (code >= 0x61 && code <= 0x7a) || (code >= 0x30 && code <= 0x39)
  }

  private readEscape(at: number): { readonly text: string; readonly length: number } | undefined {
    this.escapes += 1
    if (this.escapes > this.limits.maxEscapes) {
      this.exceed(`The record has more than ${this.limits.maxEscapes} backslash escapes`)
      return undefined
    }
    const escape = this.text.charAt(at + 1)
    const plain = ESCAPES[escape]
    if (plain !== undefined) return { text: plain, length: 2 }
    const hex = this.text.slice(at + 2, at + 6)
    if (escape === 'u' && /^[0-9a-fA-F]{4}$/.test(hex))
      return { text: String.fromCharCode(Number.parseInt(hex, 16)), length: 6 }
    this.fail(escape === 'u' ? 'a \\u escape needs four hexadecimal digits' : 'an escape is unknown', at)
    return undefined
  }

  private skipValue(depth: number): boolean {
    if (depth > MAX_DEPTH) return this.fail(`values are nested deeper than ${MAX_DEPTH} levels`)
    const code = this.peek()
    if (code === QUOTE || code === APOSTROPHE) return this.readString() !== undefined
    if (code === 0x7b) return this.skipMembers(depth, 0x7d, true)
    if (code === 0x5b) return this.skipMembers(depth, 0x5d, false)
    if (this.takeWord('true') || this.takeWord('false') || this.takeWord('null')) return true
    return this.readNumber() !== undefined
  }

  private skipMembers(depth: number, close: number, named: boolean): boolean {
    this.position += 1
    if (this.take(close)) return true
    const names = named ? new Set<string>() : undefined
    for (;;) {
      if (!this.countMember()) return false
      if (names !== undefined) {
        const name = this.readString()
        if (name === undefined) return false
        if (names.has(name)) return this.fail('a name occurs twice in one object')
        names.add(name)
        if (!this.take(0x3a)) return this.fail('a colon is expected')
      }
      if (!this.skipValue(depth + 1)) return false
      if (this.take(close)) return true
      if (!this.take(0x2c)) return this.fail('a comma or the end of the value is expected')
    }
  }

  /** Stores a fault about a limit unless a fault is stored already. `message` is a sentence without its full stop. Always returns false. */
  private exceed(message: string): boolean {
    this.fault ??= { message, isLimit: true, position: this.position }
    return false
  }

  private failText(message: string, position = this.position): string | undefined {
    this.fail(message, position)
    return undefined
  }
}
