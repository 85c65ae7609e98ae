import { QueryError } from '../query-error.ts'

// These two limits keep parsing fast. Queries of real clients stay far below them.
/** The maximum depth of nested parentheses, calls, operators and options, and the maximum height of an expression tree. */
const maxDepth = 100
const maxLength = 32_768

// The patterns of a name (OData ABNF odataIdentifier): at most 128 characters, with the Unicode classes that the ABNF allows.
const asciiName = /[A-Za-z_][A-Za-z0-9_]*/y
const unicodeName = /[\p{L}\p{Nl}_][\p{L}\p{Nl}\p{Nd}\p{Mn}\p{Mc}\p{Pc}\p{Cf}]*/uy
const maxNameLength = 128

/** A decoded text and a position in it. All parsers of a query option share one cursor. */
export class Cursor {
  readonly text: string
  position = 0
  /** The lambda variables in scope, with the innermost last. */
  readonly variables: string[] = []
  /** The height of the last parsed expression tree. A leaf has height 1. */
  height = 0
  #depth = 0

  constructor(text: string) {
    this.text = text
    if (text.length > maxLength) this.fail(`The text has more than ${maxLength} characters`, maxLength)
  }

  /** Throws a `QueryError`. `position` defaults to the next character. */
  fail(message: string, position = this.position): never {
    throw new QueryError(message, position)
  }

  get atEnd(): boolean {
    return this.position >= this.text.length
  }

  get code(): number {
    return this.text.charCodeAt(this.position)
  }

  sees(token: string): boolean {
    return this.text.startsWith(token, this.position)
  }

  eat(token: string): boolean {
    if (!this.sees(token)) return false
    this.position += token.length
    return true
  }

  expect(token: string): void {
    if (!this.eat(token)) this.fail(`Expected "${token}"`)
  }

  /** Skips spaces and tabs (ABNF BWS). Returns true if there were any. */
  skipSpaces(): boolean {
    const start = this.position
    while (this.code === 0x20 || this.code === 0x09) this.position += 1
    return this.position > start
  }

  /** Consumes the match of a sticky pattern at the cursor, if there is one. */
  match(pattern: RegExp): string | undefined {
    const start = this.position
    pattern.lastIndex = start
    // `test` is used because `exec` would allocate a result. `test` stores the end of the match in `lastIndex`.
    if (!pattern.test(this.text)) return undefined
    this.position = pattern.lastIndex
    return this.text.slice(start, this.position)
  }

  name(): string | undefined {
    const start = this.position
    let name = this.match(asciiName)
    if (this.code > 0x7f) {
      this.position = start
      name = this.match(unicodeName)
    }
    if (name !== undefined && name.length > maxNameLength) {
      this.fail(`A name has more than ${maxNameLength} characters`, start)
    }
    return name
  }

  /** Consumes `name` or `name.name.name`. Throws `QueryError` on anything else. */
  qualifiedName(expected: string): string {
    let name = this.name() ?? this.fail(`Expected ${expected}`)
    while (this.eat('.')) name += `.${this.name() ?? this.fail('Expected a name after "."')}`
    return name
  }

  /** Runs `parse` one level deeper. Throws `QueryError` beyond `maxDepth`, so that the call stack never overflows. */
  nested<T>(parse: () => T): T {
    if (this.#depth >= maxDepth) this.#failDeep(this.position)
    this.#depth += 1
    const result = parse()
    this.#depth -= 1
    return result
  }

  /** Sets `height` for a node whose tallest child has the height `below`. Throws `QueryError` if the tree becomes taller than `maxDepth`. */
  grow(below: number, position: number): void {
    if (below >= maxDepth) this.#failDeep(position)
    this.height = below + 1
  }

  #failDeep(position: number): never {
    this.fail(`The query is nested more than ${maxDepth} levels deep`, position)
  }

  expectEnd(expected: string): void {
    this.skipSpaces()
    if (!this.atEnd) this.fail(`Expected ${expected}`)
  }
}
