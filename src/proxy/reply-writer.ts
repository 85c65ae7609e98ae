import { type ServerResponse, validateHeaderValue } from 'node:http'

import type { WireReply } from '../compare/wire-exchange.ts'
import type { ReplyHead } from '../upstream/index.ts'
import type { HeldBytes } from './byte-budget.ts'
import { holdsCredential, toClientFields } from './forwarded-fields.ts'
import { withoutPlaces } from '../translate/index.ts'
import { LinkRewriter, type ReplyLinks, rewriteField } from './link-rewriter.ts'

/** How a reply is sent on. */
export interface ReplyOptions {
  /** Absolute links to change in header fields and JSON bodies; undefined: they stay as they are. */
  readonly links: ReplyLinks | undefined
  /** False: links in bodies stay as they are. */
  readonly linksInBody: boolean
  /** The query is not as the client wrote it: an error of the upstream names no place in it. */
  readonly queryRewritten: boolean
  /** Credentials that the adapter has lent the client: a field that holds one stays behind. Bodies are not searched. */
  readonly withheld: readonly string[]
  /** Bytes of a body that a copy of the reply may have; 0: no copy is made. */
  readonly captureBytes: number
  /** Charged with the copy. */
  readonly held: HeldBytes
  /** Called with the copy when the whole reply has come; the last bytes go to the client once the promise has settled. */
  readonly onWhole: ((reply: WireReply) => void | Promise<void>) | undefined
  /** Called when the client has read the data for which `data` returned false. */
  readonly onDrain: () => void
}

const NO_BYTES = Buffer.alloc(0)

/**
 * Sends a reply on as it comes: status, end-to-end fields in their order and case, and bytes. Where its copy must be kept before
 * the client has all of it, the last piece is held back until then.
 */
export class ReplyWriter {
  private readonly response: ServerResponse
  private readonly options: ReplyOptions
  private head = { status: 0, reason: '', fields: [] as string[] }
  private rewriter: Pick<LinkRewriter, 'write'> | undefined
  /** A body whose links change, in the turn of the event loop in which its head came: one that ends in it keeps a length. */
  private whole: Buffer[] | undefined
  private copy: Buffer[] | undefined
  private copied = 0
  private heldBack: Buffer = NO_BYTES
  private waitsForDrain = false

  constructor(response: ServerResponse, options: ReplyOptions) {
    this.response = response
    this.options = options
  }

  /** Throws Node's error for a status line or a field that cannot be sent. */
  start(head: ReplyHead): void {
    const { response } = this
    const { links, linksInBody, queryRewritten, withheld, captureBytes } = this.options
    if (head.status < 200) throw new RangeError('The status of the reply is not a final one.')
    validateHeaderValue('reason', head.reason)
    const fields = toClientFields(head, withheld)
    if (links !== undefined) rewriteFields(fields, links)
    const reason = holdsCredential(head.reason, withheld) ? '' : head.reason
    this.head = { status: head.status, reason, fields }
    if (captureBytes > 0) this.copy = []
    // Only fields of the upstream go to the client.
    response.sendDate = false
    const leavesOutPlaces = queryRewritten && head.status >= 400
    if (leavesOutPlaces) this.rewriter = createPlaceRemover()
    else if (links !== undefined && linksInBody) this.rewriter = new LinkRewriter(links)
    if (this.rewriter !== undefined && isPlainJson(head)) this.whole = []
    else {
      this.rewriter = undefined
      this.writeHead()
    }
    // A body that has arrived with the head goes out with it, in one write.
    queueMicrotask(() => this.flush())
  }

  /** Sends a piece of the body; false: no more before `onDrain`. */
  data(chunk: Buffer): boolean {
    if (this.whole === undefined) this.pass(this.rewriter?.write(chunk) ?? chunk)
    else this.whole.push(chunk)
    return !this.waitsForDrain
  }

  /** Sends the end; `done` is called with the copy once all of it was handed to the client. Throws as `start`. */
  end(done: (captured: WireReply | undefined) => void): void {
    const { response, rewriter, whole } = this
    if (whole !== undefined) {
      this.whole = undefined
      const body = rewriter?.write(Buffer.concat(whole), true) ?? NO_BYTES
      // Without a body (HEAD, 304) the length is that of another reply, whose links change: it is not known here.
      setLength(this.head.fields, body.length === 0 ? undefined : body.length)
      this.writeHead()
      this.keep(body)
      this.heldBack = body
    } else if (rewriter !== undefined) this.pass(rewriter.write(NO_BYTES, true))
    const { captureBytes, onWhole } = this.options
    const captured =
      captureBytes === 0 ? undefined : { ...this.head, body: this.copy && Buffer.concat(this.copy) }
    const finish = (): void => {
      if (!response.destroyed) response.end(this.heldBack)
      done(captured)
    }
    const kept = captured && onWhole?.(captured)
    if (kept === undefined) finish()
    else void kept.then(finish, finish)
  }

  /** Lets the upstream go on although the client has gone. */
  drop(): void {
    this.waitsForDrain = false
    this.options.onDrain()
  }

  /** Sends what has come so far; the length of a body whose links change is not known then. */
  private flush(): void {
    const { response, whole } = this
    if (response.destroyed || response.writableEnded) return
    if (whole !== undefined) {
      this.whole = undefined
      setLength(this.head.fields, undefined)
      this.writeHead()
      this.pass(this.rewriter?.write(Buffer.concat(whole)) ?? NO_BYTES)
    }
    response.flushHeaders()
  }

  private writeHead(): void {
    const { status, reason, fields } = this.head
    if (!this.response.destroyed) this.response.writeHead(status, reason, fields)
  }

  private pass(bytes: Buffer): void {
    if (bytes.length === 0) return
    this.keep(bytes)
    if (this.options.onWhole === undefined) {
      this.write(bytes)
      return
    }
    this.write(this.heldBack)
    this.heldBack = bytes
  }

  /** Adds to the copy, as far as its bound and the budget of bytes allow. */
  private keep(bytes: Buffer): void {
    if (this.copy === undefined) return
    this.copied += bytes.length
    try {
      if (this.copied > this.options.captureBytes) this.copy = undefined
      else this.options.held.take(bytes.length)
    } catch {
      // The reply itself goes on: only its copy is given up.
      this.copy = undefined
    }
    this.copy?.push(bytes)
  }

  private write(bytes: Buffer): void {
    const { response } = this
    if (bytes.length === 0 || response.destroyed || response.write(bytes) || this.waitsForDrain) return
    this.waitsForDrain = true
    response.once('drain', () => this.drop())
  }
}

/** The bodies of errors are short; a longer one passes as it is. */
const MAX_ERROR_BYTES = 65_536

function createPlaceRemover(): Pick<LinkRewriter, 'write'> {
  let held: Buffer = NO_BYTES
  return {
    write: (chunk, isLast) => {
      const bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk])
      const isHeld = !isLast && bytes.length <= MAX_ERROR_BYTES
      held = isHeld ? bytes : NO_BYTES
      if (isHeld) return NO_BYTES
      return bytes.length > MAX_ERROR_BYTES ? bytes : Buffer.from(withoutPlaces(bytes.toString('utf8')))
    },
  }
}

/** Fields with an address that a client may call (RFC 9110 8.7, 10.2.2; OData protocol 8.3.4). */
const ADDRESS_FIELDS: ReadonlySet<string> = new Set(['location', 'content-location', 'odata-entityid'])

/** Changes addresses in a list of names and values, in place. */
function rewriteFields(fields: string[], links: ReplyLinks): void {
  for (let at = 0; at + 1 < fields.length; at += 2)
    if (ADDRESS_FIELDS.has(fields[at]?.toLowerCase() ?? ''))
      fields[at + 1] = rewriteField(links, fields[at + 1] ?? '') ?? fields[at + 1] ?? ''
}

/** A body that may have links: JSON that is not encoded. */
function isPlainJson({ fields }: ReplyHead): boolean {
  if (fields.one('content-length') === '0') return false
  const isPlain = fields.all('content-encoding').every((coding) => /^identity$/i.test(coding))
  return isPlain && /^application\/json\b/i.test(fields.one('content-type') ?? '')
}

/** Sets the value of `Content-Length` in its place; undefined: removes it. */
function setLength(fields: string[], length: number | undefined): void {
  const at = fields.findIndex((name, index) => index % 2 === 0 && name.toLowerCase() === 'content-length')
  if (at === -1) return
  if (length === undefined) fields.splice(at, 2)
  else fields[at + 1] = String(length)
}
