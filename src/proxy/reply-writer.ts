import { type ServerResponse, validateHeaderValue } from 'node:http'

import type { WireReply } from '../compare/wire-exchange.ts'
import type { ReplyHead } from '../upstream/index.ts'
import type { HeldBytes } from './byte-budget.ts'
import { holdsCredential, toClientFields } from './forwarded-fields.ts'
import { withoutPlaces } from '../translate/index.ts'
import { LinkRewriter, type ReplyLinks, rewriteField } from './link-rewriter.ts'

export interface ReplyOptions {
  /** The absolute links that are rewritten in header fields and JSON bodies. If `undefined`, links stay unchanged. */
  readonly links: ReplyLinks | undefined
  readonly linksInBody: boolean
  /** True if the query differs from the client's, so that positions in the query are removed from the upstream's errors. */
  readonly queryRewritten: boolean
  /** The credentials of the adapter. Header fields that contain one of them are removed. Bodies are not searched. */
  readonly withheld: readonly string[]
  /** The maximum size in bytes of the copy of the body, or 0 for no copy. */
  readonly captureBytes: number
  /** The reservation in the byte budget to which the copy is added. */
  readonly held: HeldBytes
  /** Called with the copy once the whole reply has arrived. The last bytes are sent to the client when the returned promise settles. */
  readonly onWhole: ((reply: WireReply) => void | Promise<void>) | undefined
  /** Called when the caller may continue after `data` returned false, and when the client has disconnected. */
  readonly onDrain: () => void
}

const NO_BYTES = Buffer.alloc(0)

/**
 * Forwards a reply as it arrives: its status, its end-to-end fields in their order and case, and its bytes. If the copy must be stored
 * before the client has the whole reply, the last piece is held back until then.
 */
export class ReplyWriter {
  private readonly response: ServerResponse
  private readonly options: ReplyOptions
  private head = { status: 0, reason: '', fields: [] as string[] }
  private rewriter: Pick<LinkRewriter, 'write'> | undefined
  /** The pieces of a body to rewrite until the head is sent. If they are the whole body, `Content-Length` is corrected and not removed. */
  private whole: Buffer[] | undefined
  private copy: Buffer[] | undefined
  private copied = 0
  private heldBack: Buffer = NO_BYTES
  private waitsForDrain = false

  constructor(response: ServerResponse, options: ReplyOptions) {
    this.response = response
    this.options = options
  }

  /** Starts the reply. Throws Node's error if the status line or a field cannot be sent. */
  start(head: ReplyHead): void {
    const { response } = this
    const { links, linksInBody, queryRewritten, withheld, captureBytes } = this.options
    if (head.status < 200) throw new RangeError('The status of the reply is not final.')
    validateHeaderValue('reason', head.reason)
    const fields = toClientFields(head, withheld)
    if (links !== undefined) rewriteFields(fields, links)
    const reason = holdsCredential(head.reason, withheld) ? '' : head.reason
    this.head = { status: head.status, reason, fields }
    if (captureBytes > 0) this.copy = []
    // Node.js must not add `Date`, because the client receives only the header fields of the upstream.
    response.sendDate = false
    const leavesOutPlaces = queryRewritten && head.status >= 400
    if (leavesOutPlaces) this.rewriter = createPlaceRemover()
    else if (links !== undefined && linksInBody) this.rewriter = new LinkRewriter(links)
    if (this.rewriter !== undefined && isPlainJson(head)) this.whole = []
    else {
      this.rewriter = undefined
      this.writeHead()
    }
    // Waits for a microtask, so that a body that arrived together with the head is sent in the same write.
    queueMicrotask(() => this.flush())
  }

  /** Sends a piece of the body. Returns false if the caller must wait for `onDrain` before the next piece. */
  data(chunk: Buffer): boolean {
    if (this.whole === undefined) this.pass(this.rewriter?.write(chunk) ?? chunk)
    else this.whole.push(chunk)
    return !this.waitsForDrain
  }

  /** Ends the reply, and calls `done` with the copy once the last bytes were passed to the response. Throws the errors of `start`. */
  end(done: (captured: WireReply | undefined) => void): void {
    const { response, rewriter, whole } = this
    if (whole !== undefined) {
      this.whole = undefined
      const body = rewriter?.write(Buffer.concat(whole), true) ?? NO_BYTES
      // Removes the field from a reply without a body (HEAD, 304), because the length of the body after rewriting is not known.
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

  /** Lets the upstream continue. Called when the client has read enough, or has disconnected, so that further data is discarded. */
  drop(): void {
    this.waitsForDrain = false
    this.options.onDrain()
  }

  /** Sends the data that has arrived so far. Removes `Content-Length`, because the length of the whole rewritten body is not known yet. */
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

  private keep(bytes: Buffer): void {
    if (this.copy === undefined) return
    this.copied += bytes.length
    try {
      if (this.copied > this.options.captureBytes) this.copy = undefined
      else this.options.held.take(bytes.length)
    } catch {
      // The byte budget is used up, so the copy is dropped. The reply to the client continues.
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

/** Maximum size of an error body from which positions are removed, in bytes. A larger body is forwarded unchanged. */
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

/** The header fields whose value is an address that a client may request (RFC 9110 8.7, 10.2.2; OData protocol 8.3.4). */
const ADDRESS_FIELDS: ReadonlySet<string> = new Set(['location', 'content-location', 'odata-entityid'])

function rewriteFields(fields: string[], links: ReplyLinks): void {
  for (let at = 0; at + 1 < fields.length; at += 2)
    if (ADDRESS_FIELDS.has(fields[at]?.toLowerCase() ?? ''))
      fields[at + 1] = rewriteField(links, fields[at + 1] ?? '') ?? fields[at + 1] ?? ''
}

/** Returns true for JSON without content encoding, because links are rewritten only in such a body. */
function isPlainJson({ fields }: ReplyHead): boolean {
  if (fields.one('content-length') === '0') return false
  const isPlain = fields.all('content-encoding').every((coding) => /^identity$/i.test(coding))
  return isPlain && /^application\/json\b/i.test(fields.one('content-type') ?? '')
}

/** Sets the value of `Content-Length` without moving the field, or removes the field if `length` is `undefined`. */
function setLength(fields: string[], length: number | undefined): void {
  const at = fields.findIndex((name, index) => index % 2 === 0 && name.toLowerCase() === 'content-length')
  if (at === -1) return
  if (length === undefined) fields.splice(at, 2)
  else fields[at + 1] = String(length)
}
