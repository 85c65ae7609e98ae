export interface LinkRewriting {
  readonly from: string
  readonly to: string
  /** The replacement for next links and delta links. Default: `to`. */
  readonly nextTo?: string
}

export interface ReplyLinks {
  /** The replacements. The first that matches applies. Each `from` begins with the `from` of the last entry, the upstream's address. */
  readonly rewritings: readonly LinkRewriting[]
  /** The requested address on the upstream, without its query. A next link with this path is rewritten even if it names another host. */
  readonly requested: string
}

type LinkKind = 'next' | 'other'

/** The text `to` that replaces the first `length` characters of a link. */
interface Rewritten {
  readonly length: number
  readonly to: string
}

/** The maximum length of the name before the `@` of an annotation. */
const MAX_NAME = 200
const MAX_BLANKS = 16
const MAX_ORIGIN = 280
/** Matches the names of links in OData 4.0 and 4.01 and in the light JSON of OData 3, and the name of the next link in OData V2. */
const NAME = `(?:[^"\\\\]{0,${MAX_NAME}}@(?:odata\\.)?|odata\\.)(?:(nextLink|deltaLink)|context|metadata|id|(?:edit|read|navigation|association)Link)|(__next)`
const COLON = `\\s{0,${MAX_BLANKS}}:\\s{0,${MAX_BLANKS}}`
/** Matches the text before a link, including its opening quote. */
const BEFORE_LINK = new RegExp(`^"(?:${NAME})"${COLON}"$`)
/** Matches text at the end of the input that may be the beginning of a link or of its name. */
const MAY_BEGIN = new RegExp(
  `"[^"\\\\]{0,${MAX_NAME}}(?:"\\s{0,${MAX_BLANKS}}(?::\\s{0,${MAX_BLANKS}}(?:"[^"]*)?)?)?$`,
)
const LOOK_BACK = MAX_NAME + 2 * MAX_BLANKS + 32
const LINK_START = 'http'
/** The characters that may follow a complete address. `https://host/api` therefore does not match a link to `https://host/apis`. */
const ENDS = '"/?#'
const NO_BYTES = Buffer.alloc(0)

/**
 * Rewrites absolute links of the upstream in a JSON body to the adapter's address, so that a client that follows `@odata.nextLink` keeps
 * calling the adapter. Rewrites links below the upstream's address, and next links with the requested path on any host. Does not change
 * context URLs with another host, because the service itself uses such URLs (service-facts 14). Holds back only bytes that may begin a
 * link.
 */
export class LinkRewriter {
  private readonly links: ReplyLinks
  /**
   * The number of bytes at the beginning of a link that decide whether it is rewritten. Doubled, because an escaped character takes
   * two bytes.
   */
  private readonly decidingBytes: number
  /** The last bytes of the input, if they may be the beginning of a link or of its name. */
  private held: Buffer = NO_BYTES

  constructor(links: ReplyLinks) {
    this.links = links
    const longest = Math.max(...links.rewritings.map(({ from }) => from.length), links.requested.length)
    this.decidingBytes = 2 * (MAX_ORIGIN + longest) + 1
  }

  /** Adds a piece of the body, and returns the bytes that can be forwarded. The call with `isLast` returns all remaining bytes. */
  write(chunk: Buffer, isLast = false): Buffer {
    const bytes = this.held.length === 0 ? chunk : Buffer.concat([this.held, chunk])
    // Uses latin1, in which each byte is one character, so that indexes in `text` are also offsets in `bytes`.
    const text = bytes.toString('latin1')
    const out: Buffer[] = []
    let done = 0
    for (let at = text.indexOf(LINK_START); at !== -1; at = text.indexOf(LINK_START, at + 1)) {
      const kind = kindAt(text, at)
      if (kind === undefined) continue
      const close = text.indexOf('"', at)
      const length = Math.min((close === -1 ? text.length : close) - at, this.decidingBytes)
      if (!isLast && close === -1 && length < this.decidingBytes) break
      const link = rewriteEscaped(this.links, text.slice(at, at + length), kind)
      if (link === undefined) continue
      out.push(bytes.subarray(done, at), Buffer.from(link.to))
      done = at + link.length
    }
    const end = isLast ? bytes.length : Math.max(done, this.beginOfLink(text))
    this.held = bytes.subarray(end)
    out.push(bytes.subarray(done, end))
    return out.length === 1 && out[0] !== undefined ? out[0] : Buffer.concat(out)
  }

  /** Returns the index at which an unfinished link or link name begins, or the length of `text` if there is none. */
  private beginOfLink(text: string): number {
    const from = Math.max(0, text.length - LOOK_BACK - this.decidingBytes)
    const found = MAY_BEGIN.exec(text.slice(from))
    return found === null ? text.length : from + found.index
  }
}

/**
 * Returns the adapter's address for the value of a header field such as `Location`, or `undefined` if the value is not below the upstream's
 * base address. A value that is only a path is resolved against the upstream's host.
 */
export function rewriteField(links: ReplyLinks, value: string): string | undefined {
  const isPath = value.startsWith('/') && !value.startsWith('//')
  const absolute = isPath ? new URL(links.requested).origin + value : value
  const link = rewriteLink(links, absolute, 'other')
  return link && link.to + absolute.slice(link.length)
}

/** Rewrites a link in a JSON string, whose slashes may be escaped. `length` of the result counts the characters of the original text. */
function rewriteEscaped(links: ReplyLinks, text: string, kind: LinkKind): Rewritten | undefined {
  const plain = text.replaceAll('\\/', '/')
  const link = rewriteLink(links, plain, kind)
  if (link === undefined || plain === text) return link
  let length = 0
  for (let left = link.length; left > 0; left -= 1) length += text.startsWith('\\/', length) ? 2 : 1
  return { ...link, length }
}

function rewriteLink(links: ReplyLinks, text: string, kind: LinkKind): Rewritten | undefined {
  const { rewritings, requested } = links
  const own = rewritings.find(({ from }) => text.startsWith(from) && endsAt(text, from.length))
  if (own !== undefined) return { length: own.from.length, to: (kind === 'next' && own.nextTo) || own.to }
  if (kind !== 'next') return undefined
  const [address = '', path = '/'] = /^https?:\/\/[^/?#"\\]+(\/[^?#"\\]*)?/i.exec(text) ?? []
  const base = rewritings.at(-1)?.from ?? ''
  // Compares the path of the link with the requested path, with and without the base path, because a service may not know the part of the path that its gateway adds.
  const paths = [new URL(requested).pathname, requested.slice(base.length)].map(comparedPath)
  if (address === '' || !endsAt(text, address.length) || !paths.includes(comparedPath(path))) return undefined
  const mapped = rewriteLink(links, requested, kind)
  return mapped && { length: address.length, to: mapped.to + requested.slice(mapped.length) }
}

function endsAt(text: string, end: number): boolean {
  return end >= text.length || ENDS.includes(text.charAt(end))
}

/** Decodes a path and puts it in lower case, because services and clients escape different characters and paths ignore case. */
function comparedPath(path: string): string {
  try {
    return decodeURIComponent(Buffer.from(path, 'latin1').toString()).toLowerCase()
  } catch {
    return path
  }
}

/** Returns the kind of the link that starts at an index, or `undefined` if no link starts there. Reads the name of its member to decide. */
function kindAt(text: string, at: number): LinkKind | undefined {
  const quote = at - 1
  if (text[quote] !== '"') return undefined
  const nameEnd = text.lastIndexOf('"', quote - 1)
  const name = text.lastIndexOf('"', nameEnd - 1)
  const found = BEFORE_LINK.exec(text.slice(Math.max(name, at - LOOK_BACK, 0), at))
  if (found === null) return undefined
  return found[1] === undefined && found[2] === undefined ? 'other' : 'next'
}
