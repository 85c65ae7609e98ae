/** Absolute links to turn into others, in JSON bodies. */
export interface LinkRewriting {
  readonly from: string
  readonly to: string
  /** Where links to a next page or a delta lead instead. */
  readonly nextTo?: string
}

/** A rewriting as bytes. */
interface LinkBytes {
  readonly from: Buffer
  readonly to: Buffer
  readonly nextTo: Buffer
}

/** Longest name before `@odata.` in an annotation. */
const MAX_NAME = 200
const MAX_BLANKS = 16
/** The text before a link, up to its opening quote. */
const BEFORE_LINK = new RegExp(
  `"[^"\\\\]{0,${MAX_NAME}}@odata\\.(?:(nextLink|deltaLink)|context|id|(?:edit|read|navigation|association)Link)"\\s{0,${MAX_BLANKS}}:\\s{0,${MAX_BLANKS}}"$`,
)
/** As much of it as decides. */
const LOOK_BACK = MAX_NAME + 2 * MAX_BLANKS + 32
const QUOTE = 0x22
/** The characters that may follow the replaced address; otherwise it is the beginning of another one. */
const ENDS = new Set(Array.from('"/?#', (char) => char.charCodeAt(0)))
const NO_BYTES = Buffer.alloc(0)

/**
 * Turns absolute links of the upstream in a JSON body into links of the adapter, so that a client which follows
 * `@odata.nextLink` stays with it. Only links under `base` change, each by the first rewriting that fits; another host in a
 * context URL is the service's own habit (service-facts 14). Everything else passes byte for byte, and only what may become
 * such a link is held back.
 */
export class LinkRewriter {
  private readonly base: Buffer
  private readonly links: readonly LinkBytes[]
  /** The beginning of a link, at the end of the received bytes. */
  private held: Buffer = NO_BYTES
  /** The last bytes before it. */
  private before: Buffer = NO_BYTES

  /** Each `from` begins with that of the last one. */
  constructor(links: readonly LinkRewriting[]) {
    this.links = links.map(({ from, to, nextTo = to }) => ({
      from: Buffer.from(from),
      to: Buffer.from(to),
      nextTo: Buffer.from(nextTo),
    }))
    this.base = this.links.at(-1)?.from ?? NO_BYTES
  }

  /**
   * The part of the body that can be forwarded: often the chunk itself. `isLast`: nothing follows, so that nothing is held back; the
   * rewriter is not used after that.
   */
  write(chunk: Buffer, isLast = false): Buffer {
    const bytes = this.held.length === 0 ? chunk : Buffer.concat([this.held, chunk])
    const out: Buffer[] = []
    let done = 0
    let end = bytes.length
    for (let at = bytes.indexOf(this.base); at !== -1; at = bytes.indexOf(this.base, at + 1)) {
      const kind = this.kindAt(bytes, at)
      if (kind === undefined) continue
      const found = this.find(bytes, at)
      if (found === 'undecided' && !isLast) {
        end = at
        break
      }
      if (found === undefined || found === 'undecided') continue
      out.push(bytes.subarray(done, at), kind === 'next' ? found.nextTo : found.to)
      done = at + found.from.length
      at = done - 1
    }
    if (!isLast) {
      if (end === bytes.length) end = this.beginOfLink(bytes, done)
      this.keep(bytes, end)
    }
    if (done === 0 && end === bytes.length) return bytes
    out.push(bytes.subarray(done, end))
    return Buffer.concat(out)
  }

  /** The bytes that were held back. */
  end(): Buffer {
    return this.held
  }

  /** The address in full, or `undecided` where its end has not come. */
  private find(bytes: Buffer, at: number): LinkBytes | 'undecided' | undefined {
    for (const link of this.links) {
      const { from } = link
      const end = at + from.length
      const present = bytes.subarray(at, end)
      if (!from.subarray(0, present.length).equals(present)) continue
      const next = bytes[end]
      if (next === undefined) return 'undecided'
      if (ENDS.has(next)) return link
    }
    return undefined
  }

  /** Where a link begins whose address may go on in the next chunk; the end of the bytes where none does. */
  private beginOfLink(bytes: Buffer, from: number): number {
    const tail = Math.max(from, bytes.length - this.base.length)
    const quote = bytes.subarray(tail).lastIndexOf(QUOTE)
    const at = quote === -1 ? tail : tail + quote + 1
    const rest = bytes.subarray(at)
    const mayBegin =
      rest.length > 0 && rest.length < this.base.length && this.base.subarray(0, rest.length).equals(rest)
    return mayBegin && this.kindAt(bytes, at) !== undefined ? at : bytes.length
  }

  /** What a text at this place is a link to; undefined: it is not a link. */
  private kindAt(bytes: Buffer, at: number): 'next' | 'other' | undefined {
    if (at > 0 && bytes[at - 1] !== QUOTE) return undefined
    // latin1 keeps each byte as one character.
    const own = bytes.toString('latin1', Math.max(0, at - LOOK_BACK), at)
    const found = BEFORE_LINK.exec(at < LOOK_BACK ? this.before.toString('latin1') + own : own)
    if (found === null) return undefined
    return found[1] === undefined ? 'other' : 'next'
  }

  private keep(bytes: Buffer, end: number): void {
    this.held = bytes.subarray(end)
    const last = bytes.subarray(Math.max(0, end - LOOK_BACK), end)
    this.before = end >= LOOK_BACK ? last : Buffer.concat([this.before, last]).subarray(-LOOK_BACK)
  }
}
