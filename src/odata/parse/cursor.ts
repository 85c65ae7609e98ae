import { QueryError } from '../query-error.ts'

// Both limits are far above the queries of real clients and far below those that take long.
/** How deep parentheses, calls, operators and nested options may go, and how high a tree may grow. */
const maxDepth = 100
/** The maximum number of characters of decoded text. */
const maxLength = 32_768

// OData ABNF odataIdentifier: at most 128 characters, here with the Unicode classes that its note allows.
const asciiName = /[A-Za-z_][A-Za-z0-9_]*/y
const unicodeName = /[\p{L}\p{Nl}_][\p{L}\p{Nl}\p{Nd}\p{Mn}\p{Mc}\p{Pc}\p{Cf}]*/uy
const maxNameLength = 128

/** A reading position in decoded text, shared by the parsers of all query options. Only ever moves forward in a parse. */
export class Cursor {
  readonly text: string
  position = 0
  /** Lambda variables in scope, innermost last. */
  readonly variables: string[] = []
  /** Height of the expression tree that was parsed last: 1 for a leaf. */
  height = 0
  #depth = 0

  /** Fails on text that is too long. */
  constructor(text: string) {
    this.text = text
    if (text.length > maxLength) this.fail(`The text has more than ${maxLength} characters`, maxLength)
  }

  /** Throws a `QueryError`; `position` defaults to the next character. */
  fail(message: string, position = this.position): never {
    throw new QueryError(message, position)
  }

  get atEnd(): boolean {
    return this.position >= this.text.length
  }

  /** Code unit of the next character, NaN at the end. */
  get code(): number {
    return this.text.charCodeAt(this.position)
  }

  /** Whether `token` comes next. */
  sees(token: string): boolean {
    return this.text.startsWith(token, this.position)
  }

  /** Consumes `token` when it comes next. */
  eat(token: string): boolean {
    if (!this.sees(token)) return false
    this.position += token.length
    return true
  }

  /** Consumes `token` or fails. */
  expect(token: string): void {
    if (!this.eat(token)) this.fail(`Expected "${token}"`)
  }

  /** Consumes blanks and tabs (ABNF BWS) and says whether there were any. */
  skipBlanks(): boolean {
    const start = this.position
    while (this.code === 0x20 || this.code === 0x09) this.position += 1
    return this.position > start
  }

  /** Consumes the match of a sticky pattern at the cursor. */
  match(pattern: RegExp): string | undefined {
    const start = this.position
    pattern.lastIndex = start
    // test leaves the end in lastIndex and, unlike exec, builds no result.
    if (!pattern.test(this.text)) return undefined
    this.position = pattern.lastIndex
    return this.text.slice(start, this.position)
  }

  /** Consumes an identifier when one comes next. */
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

  /** Consumes `name` or `name.name.name` and fails on anything else. */
  qualifiedName(expected: string): string {
    let name = this.name() ?? this.fail(`Expected ${expected}`)
    while (this.eat('.')) name += `.${this.name() ?? this.fail('Expected a name after "."')}`
    return name
  }

  /** Runs `parse` one level deeper; fails beyond `maxDepth` before the call stack is at risk. */
  nested<T>(parse: () => T): T {
    if (this.#depth >= maxDepth) this.#failDeep(this.position)
    this.#depth += 1
    const result = parse()
    this.#depth -= 1
    return result
  }

  /** Records a node above children of height `below`; fails where the tree becomes higher than `maxDepth`. */
  grow(below: number, position: number): void {
    if (below >= maxDepth) this.#failDeep(position)
    this.height = below + 1
  }

  #failDeep(position: number): never {
    this.fail(`Nested more than ${maxDepth} deep`, position)
  }

  /** Fails unless the text is used up, blanks at its end aside. */
  expectEnd(expected: string): void {
    this.skipBlanks()
    if (!this.atEnd) this.fail(`Expected ${expected}`)
  }
}
