/** Absolute links to turn into others, in JSON bodies. */
export interface LinkRewriting {
  readonly from: string
  readonly to: string
  /** Where links to a next page or a delta lead instead. */
  readonly nextTo?: string
}

/** The links of one reply. */
export interface ReplyLinks {
  /** The first one that fits counts; each `from` begins with that of the last one, the address of the upstream. */
  readonly rewritings: readonly LinkRewriting[]
  /** The address that was called, without its query: a link to its next page leads there whatever host the link names. */
  readonly requested: string
}

type LinkKind = 'next' | 'other'

/** A link that changes: the characters at its start that are replaced. */
interface Rewritten {
  readonly length: number
  readonly to: string
}

/** Longest name before the `@` of an annotation. */
const MAX_NAME = 200
const MAX_BLANKS = 16
/** Scheme and authority of a link, at most. */
const MAX_ORIGIN = 280
/** Names of links: of OData 4.0 and 4.01, of the light JSON of OData 3, and the next link of OData V2. */
const NAME = `(?:[^"\\\\]{0,${MAX_NAME}}@(?:odata\\.)?|odata\\.)(?:(nextLink|deltaLink)|context|metadata|id|(?:edit|read|navigation|association)Link)|(__next)`
const COLON = `\\s{0,${MAX_BLANKS}}:\\s{0,${MAX_BLANKS}}`
/** The text before a link, up to its opening quote. */
const BEFORE_LINK = new RegExp(`"(?:${NAME})"${COLON}"$`)
/** A name that ends in these bytes may become that of a link, or be followed by one. */
const MAY_BEGIN = new RegExp(
  `"[^"\\\\]{0,${MAX_NAME}}(?:"\\s{0,${MAX_BLANKS}}(?::\\s{0,${MAX_BLANKS}}(?:"[^"]*)?)?)?$`,
)
/** As much of it as decides. */
const LOOK_BACK = MAX_NAME + 2 * MAX_BLANKS + 32
const LINK_START = Buffer.from('"http')
/** What may follow the replaced address; otherwise it is the beginning of another one. */
const ENDS = '"/?#'
const NO_BYTES = Buffer.alloc(0)

/**
 * Turns absolute links of the upstream in a JSON body into links of the adapter, so that a client which follows
 * `@odata.nextLink` stays with it. Links under the upstream's address change, and links to the next page of what was called, whatever host
 * they name; another host in a context URL is the service's own habit (service-facts 14). Everything else passes byte for byte, and only
 * what may become such a link is held back.
 */
export class LinkRewriter {
  private readonly links: ReplyLinks
  /** Bytes of a link, and of the character after its address, that decide what becomes of it; slashes may be escaped. */
  private readonly decidingBytes: number
  /** The last bytes so far, where they may be a link or its name. */
  private held: Buffer = NO_BYTES

  constructor(links: ReplyLinks) {
    this.links = links
    const longest = Math.max(...links.rewritings.map(({ from }) => from.length), links.requested.length)
    this.decidingBytes = 2 * (MAX_ORIGIN + longest) + 1
  }

  /** The part of the body that can be forwarded. `isLast`: nothing follows; the rewriter is not used after that. */
  write(chunk: Buffer, isLast = false): Buffer {
    const bytes = this.held.length === 0 ? chunk : Buffer.concat([this.held, chunk])
    const out: Buffer[] = []
    let done = 0
    for (let quote = bytes.indexOf(LINK_START); quote !== -1; quote = bytes.indexOf(LINK_START, quote + 1)) {
      const at = quote + 1
      const kind = kindAt(bytes, at)
      if (kind === undefined) continue
      const text = bytes.toString('latin1', at, at + this.decidingBytes)
      if (!isLast && text.length < this.decidingBytes && !text.includes('"')) break
      const link = rewriteEscaped(this.links, text, kind)
      if (link === undefined) continue
      out.push(bytes.subarray(done, at), Buffer.from(link.to))
      done = at + link.length
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
}

/**
 * Returns the address at the adapter for the value of a header field (`Location`), or `undefined` if it leads elsewhere. A path alone is one
 * of the upstream.
 */
export function rewriteField(links: ReplyLinks, value: string): string | undefined {
  const isPath = value.startsWith('/') && !value.startsWith('//')
  const absolute = isPath ? new URL(links.requested).origin + value : value
  const link = rewriteLink(links, absolute, 'other')
  return link && link.to + absolute.slice(link.length)
}

/** As `rewriteLink`, for the text of a JSON string up to its end, which may escape slashes. `length` counts the text as it is written. */
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
  // A service behind a gateway may not know the path of the gateway.
  const paths = [new URL(requested).pathname, requested.slice(base.length)].map(comparedPath)
  if (address === '' || !endsAt(text, address.length) || !paths.includes(comparedPath(path))) return undefined
  const mapped = rewriteLink(links, requested, kind)
  return mapped && { length: address.length, to: mapped.to + requested.slice(mapped.length) }
}

function endsAt(text: string, end: number): boolean {
  return end >= text.length || ENDS.includes(text.charAt(end))
}

/** A path as it is compared: services escape other characters than their clients do, and paths of the service have no case. */
function comparedPath(path: string): string {
  try {
    return decodeURIComponent(Buffer.from(path, 'latin1').toString()).toLowerCase()
  } catch {
    return path
  }
}

/** What a text at this place is a link to; undefined: it is not a link. */
function kindAt(bytes: Buffer, at: number): LinkKind | undefined {
  // latin1 keeps each byte as one character.
  const found = BEFORE_LINK.exec(bytes.toString('latin1', Math.max(0, at - LOOK_BACK), at))
  if (found === null) return undefined
  return found[1] === undefined && found[2] === undefined ? 'other' : 'next'
}
