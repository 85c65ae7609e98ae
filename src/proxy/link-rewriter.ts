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
/** A name that ends in these bytes may become that of a link, or be followed by one. */
const MAY_BEGIN = new RegExp(
  `"[^"\\\\]{0,${MAX_NAME}}(?:"\\s{0,${MAX_BLANKS}}(?::\\s{0,${MAX_BLANKS}}(?:"[^"\\\\]*)?)?)?$`,
)
/** As much of it as decides. */
const LOOK_BACK = MAX_NAME + 2 * MAX_BLANKS + 32
const QUOTE = 0x22
/** The characters that may follow the replaced address; otherwise it is the beginning of another one. */
const ENDS = new Set(Array.from('"/?#', (char) => char.charCodeAt(0)))
const NO_BYTES = Buffer.alloc(0)

/**
 * Turns absolute links of the upstream in a JSON body into links of the adapter, so that a client which follows
 * `@odata.nextLink` stays with it. Only links under the upstream's address change, each by the first rewriting that fits; another host in a
 * context URL is the service's own habit (service-facts 14). Everything else passes byte for byte, and only what may become
 * such a link is held back.
 */
export class LinkRewriter {
  private readonly base: Buffer
  private readonly links: readonly LinkBytes[]
  /** Bytes of an address, and of the character after it, that decide which rewriting fits. */
  private readonly decidingBytes: number
  /** The last bytes so far, where they may be a link or its name. */
  private held: Buffer = NO_BYTES

  /** Each `from` begins with that of the last one. */
  constructor(links: readonly LinkRewriting[]) {
    this.links = links.map(({ from, to, nextTo = to }) => ({
      from: Buffer.from(from),
      to: Buffer.from(to),
      nextTo: Buffer.from(nextTo),
    }))
    this.base = this.links.at(-1)?.from ?? NO_BYTES
    this.decidingBytes = 1 + Math.max(...this.links.map(({ from }) => from.length))
  }

  /** The part of the body that can be forwarded. `isLast`: nothing follows; the rewriter is not used after that. */
  write(chunk: Buffer, isLast = false): Buffer {
    const bytes = this.held.length === 0 ? chunk : Buffer.concat([this.held, chunk])
    const decided = isLast ? bytes.length : bytes.length - this.decidingBytes
    const out: Buffer[] = []
    let done = 0
    for (let at = bytes.indexOf(this.base); at !== -1 && at <= decided;) {
      const kind = kindAt(bytes, at)
      const link = kind === undefined ? undefined : this.find(bytes, at)
      if (link !== undefined) {
        out.push(bytes.subarray(done, at), kind === 'next' ? link.nextTo : link.to)
        done = at + link.from.length
      }
      at = bytes.indexOf(this.base, at + 1)
    }
    const end = isLast ? bytes.length : Math.max(done, this.beginOfLink(bytes))
    this.held = bytes.subarray(end)
    out.push(bytes.subarray(done, end))
    return out.length === 1 && out[0] !== undefined ? out[0] : Buffer.concat(out)
  }

  /** Where a name begins that may be that of a link whose address is not whole; else the end of the bytes. */
  private beginOfLink(bytes: Buffer): number {
    const from = Math.max(0, bytes.length - LOOK_BACK - this.decidingBytes)
    const found = MAY_BEGIN.exec(bytes.toString('latin1', from))
    return found === null ? bytes.length : from + found.index
  }

  private find(bytes: Buffer, at: number): LinkBytes | undefined {
    return this.links.find(({ from }) => {
      const end = at + from.length
      return ENDS.has(bytes[end] ?? 0) && bytes.subarray(at, end).equals(from)
    })
  }
}

/** What a text at this place is a link to; undefined: it is not a link. */
function kindAt(bytes: Buffer, at: number): 'next' | 'other' | undefined {
  if (bytes[at - 1] !== QUOTE) return undefined
  // latin1 keeps each byte as one character.
  const found = BEFORE_LINK.exec(bytes.toString('latin1', Math.max(0, at - LOOK_BACK), at))
  if (found === null) return undefined
  return found[1] === undefined ? 'other' : 'next'
}
