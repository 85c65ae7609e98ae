/** The header fields of a reply as an HTTP client returns them: name, value, name, value. Any other form counts as an empty list. */
type RawFields = readonly (string | Buffer)[] | object | null | undefined

/**
 * Reads the raw header fields of a reply (RFC 9110 5.3). Raw fields are used because undici's parsed fields may be arrays although its
 * types promise strings.
 */
export class ReplyFields {
  private readonly raw: readonly (string | Buffer)[]

  constructor(raw: RawFields) {
    this.raw = Array.isArray(raw) ? (raw as readonly (string | Buffer)[]) : []
  }

  /** Returns the names and values in the received order and case: name, value, name, value. */
  list(): string[] {
    return this.raw.map(textOf)
  }

  /** Returns all values of a field in the received order. `name` must be in lower case. */
  all(name: string): string[] {
    const values: string[] = []
    for (let at = 0; at + 1 < this.raw.length; at += 2) {
      const [own, value] = [this.raw[at], this.raw[at + 1]]
      // Decodes a name only if its length matches, because this code runs for every reply.
      if (own?.length !== name.length || value === undefined) continue
      if (textOf(own).toLowerCase() === name) values.push(textOf(value).trim())
    }
    return values
  }

  /** Returns the value of a field, or `undefined` if the field is missing or has several different values. */
  one(name: string): string | undefined {
    const [first, ...others] = this.all(name)
    return others.every((other) => other === first) ? first : undefined
  }
}

const textOf = (part: string | Buffer): string => (typeof part === 'string' ? part : part.toString('latin1'))
