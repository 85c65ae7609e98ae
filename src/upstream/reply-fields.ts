/** The header fields of a reply as an HTTP client returns them: name, value, name, value. Any other form counts as no fields. */
type RawFields = readonly (string | Buffer)[] | object | null | undefined

/** Reads the fields of a reply (RFC 9110 5.3). undici returns a list for a repeated field where its types promise a string. */
export class ReplyFields {
  private readonly raw: readonly (string | Buffer)[]

  constructor(raw: RawFields) {
    this.raw = Array.isArray(raw) ? (raw as readonly (string | Buffer)[]) : []
  }

  /** Returns the names and values in their received order and case: name, value, name, value. */
  list(): string[] {
    return this.raw.map(textOf)
  }

  /** Returns every value in the received order. `name` is in lower case. */
  all(name: string): string[] {
    const values: string[] = []
    for (let at = 0; at + 1 < this.raw.length; at += 2) {
      const [own, value] = [this.raw[at], this.raw[at + 1]]
      // Every reply passes here, so a name is only decoded if its length matches.
      if (own?.length !== name.length || value === undefined) continue
      if (textOf(own).toLowerCase() === name) values.push(textOf(value).trim())
    }
    return values
  }

  /** Returns the value of a field, or `undefined` if the reply does not have the field or has several values that differ. */
  one(name: string): string | undefined {
    const [first, ...others] = this.all(name)
    return others.every((other) => other === first) ? first : undefined
  }
}

const textOf = (part: string | Buffer): string => (typeof part === 'string' ? part : part.toString('latin1'))
