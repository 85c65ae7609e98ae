import { AdapterError } from '../../errors.ts'
import { formatBytes } from '../../http/body.ts'
import { runAtOnce, type Steps } from '../../http/slices.ts'
import { type HeaderLines, lineEnd, readHeaders, valuesOf } from '../http-part/headers.ts'
import { defaultBatchLimits } from '../limits.ts'
import {
  contentEnd,
  createDelimiterFinder,
  type Delimiter,
  isWhiteSpace,
  NearDelimiters,
  readBoundary,
} from '../multipart/parts.ts'

export interface ReplyPart {
  /** The Content-ID of the MIME headers, or otherwise of the HTTP headers, or `undefined` if neither has a Content-ID. */
  readonly contentId: string | undefined
  /** The position of the enclosing changeset response, counted from 1, or `undefined` for a part directly under the batch. */
  readonly changeset: number | undefined
  readonly mime: HeaderLines
  readonly status: number
  readonly reason: string
  readonly http: HeaderLines
  readonly body: string
}

export interface BatchReply {
  /** The number of changeset responses, including empty ones. */
  readonly changesets: number
  /** The parts in the order of the reply. The single 200 with which V2 answers a batch whose ids differ has no parts (batch-wire 3). */
  readonly parts: readonly ReplyPart[]
}

interface ReplyDecoding {
  /** Adds a piece of the reply, and returns the parts that this piece completes. */
  push(chunk: Buffer): ReplyPart[]
  /** Ends the reply, and returns the parts that are complete only now. Throws `ADP_TRUNCATED` if the reply is incomplete. */
  end(): ReplyPart[]
}

/**
 * Decodes a V2 batch reply in the layout `flat` or `nested` (batch-wire 2), as a client would. Throws the errors of `decodeBatch` for a
 * broken envelope, `ADP_NESTING` for a changeset within a changeset, and `ADP_REQUEST_LINE` for a part without a status line. Throws
 * `ADP_LIMIT` if the reply has more parts than a batch may have, or a part with a body of more than `MAX_PART_BYTES`.
 */
export function decodeBatchReply(bytes: Buffer, contentType: string | undefined): BatchReply {
  return runAtOnce(decodeBatchReplyInSteps(bytes, contentType))
}

export function* decodeBatchReplyInSteps(bytes: Buffer, contentType: string | undefined): Steps<BatchReply> {
  return yield* new ReplyDecoder(readBoundary(contentType)).decodeWhole(bytes)
}

/**
 * Creates a decoder for a reply that is still arriving. The decoder returns a part with a Content-Length before the next delimiter arrives.
 */
export function openReplyDecoding(contentType: string | undefined): ReplyDecoding {
  return new ReplyDecoder(readBoundary(contentType))
}

interface OpenPart {
  readonly start: number
  /** True for the first part of its multipart body. If it is also the last part and has only white space, the body is empty (F11). */
  readonly isFirst: boolean
  isDone: boolean
}

/** The fixed cost of one part, in the units of `Slices.spend`: the number of bytes that take the same time to decode. */
const STEP_WORK = 512
/** Maximum length of the body of a part in bytes. A body repeats the posted record and adds members, so it may be longer than a record. */
const MAX_PART_BYTES = 2 * defaultBatchLimits.maxPartBytes

class ReplyDecoder implements ReplyDecoding {
  private readonly parts: ReplyPart[] = []
  private changesets = 0
  /** The boundary of the batch, followed by the boundary of the current changeset if there is one. Empty once the batch has ended. */
  private readonly boundaries: string[]
  /** The received bytes. The bytes before `position` are no longer needed, and the next `push` drops them. */
  private bytes: Buffer = Buffer.alloc(0)
  private position = 0
  /** The offset from which the next search starts, because no further delimiter begins before it. */
  private searchedTo = 0
  private readonly near = new NearDelimiters(defaultBatchLimits.maxParts)
  private part: OpenPart | undefined
  private isFirst = true
  private isFinal = false

  constructor(boundary: string) {
    this.boundaries = [boundary]
  }

  push(chunk: Buffer): ReplyPart[] {
    this.bytes = Buffer.concat([this.bytes.subarray(this.position), chunk])
    if (this.part !== undefined) this.part = { ...this.part, start: 0 }
    this.searchedTo = Math.max(0, this.searchedTo - this.position)
    this.position = 0
    runAtOnce(this.read())
    return this.parts.splice(0)
  }

  end(): ReplyPart[] {
    this.isFinal = true
    runAtOnce(this.read())
    this.expectEnd()
    return this.parts.splice(0)
  }

  *decodeWhole(bytes: Buffer): Steps<BatchReply> {
    this.bytes = bytes
    this.isFinal = true
    yield* this.read()
    this.expectEnd()
    return { changesets: this.changesets, parts: this.parts }
  }

  private *read(): Steps<void> {
    for (;;) {
      const boundary = this.boundaries.at(-1)
      if (boundary === undefined) return
      const from = this.position
      const next = yield* this.findDelimiter(boundary)
      if (this.enterChangeset(next?.start)) continue
      const part = next === undefined ? this.takeWhole() : yield* this.takePart(next)
      if (part !== undefined) this.parts.push(part)
      if (this.parts.length > defaultBatchLimits.maxParts)
        throw new AdapterError('ADP_LIMIT', 'The reply has more parts than a batch may have.')
      if (next === undefined) return
      this.pass(next)
      yield this.position - from + STEP_WORK
    }
  }

  private expectEnd(): void {
    if (this.boundaries.length === 0) return
    const message =
      'The reply has no closing delimiter. It is truncated, or its header names another boundary.'
    throw new AdapterError('ADP_TRUNCATED', message)
  }

  /** Finds the next delimiter line. Ignores a line that is still arriving, because it may become another line or a closing delimiter. */
  private *findDelimiter(boundary: string): Steps<Delimiter | undefined> {
    const { bytes, isFinal } = this
    // While the reply is arriving, each push searches the same lines again, so `near` must not count them yet.
    const near = isFinal ? this.near : undefined
    const find = createDelimiterFinder(bytes, boundary, defaultBatchLimits.maxBoundaryPadding, near)
    const found = yield* find(Math.max(this.position, this.searchedTo), bytes.length)
    if (found !== undefined && (isFinal || bytes[found.end - 1] === LF)) return found
    this.searchedTo = Math.max(this.position, found?.start ?? bytes.lastIndexOf(LF))
    if (this.part === undefined) this.position = this.searchedTo
    return undefined
  }

  private pass({ end, closing }: Delimiter): void {
    this.position = end
    this.part = closing ? undefined : { start: end, isFirst: this.isFirst, isDone: false }
    this.isFirst = false
    if (closing) this.boundaries.pop()
  }

  /** Enters a changeset once its headers have arrived, and returns true if it did. `to` is the offset of the part's end, if it is known. */
  private enterChangeset(to = this.bytes.length): boolean {
    const { part } = this
    if (part === undefined || part.isDone) return false
    if (endOfHead(this.bytes, part.start, to) === undefined) return false
    const mime = readHeaders(this.bytes, part.start, to, defaultBatchLimits, {})
    const type = valuesOf(mime.lines, 'content-type')[0] ?? ''
    if (!/^multipart\//i.test(type)) return false
    // Refuses deeper nesting, as in a request, because another program wrote the reply and may have made an error.
    if (this.boundaries.length > 1)
      throw new AdapterError('ADP_NESTING', 'A changeset of the reply contains another changeset.')
    this.boundaries.push(boundaryOfChangeset(type))
    this.changesets += 1
    this.part = undefined
    this.isFirst = true
    this.position = mime.end
    this.searchedTo = mime.end
    return true
  }

  /** Returns the part that ends at a delimiter, or `undefined` if this part was returned earlier or the multipart body is empty. */
  private *takePart({ start, closing }: Delimiter): Steps<ReplyPart | undefined> {
    const { part, bytes } = this
    if (part === undefined || part.isDone) return undefined
    const end = contentEnd(bytes, part.start, start)
    if (part.isFirst && closing && (yield* isWhiteSpace(bytes, { start: part.start, end }))) return undefined
    const { head, bodyStart } = this.readHead(part.start, end)
    return this.toPart(head, bodyStart, end)
  }

  /** Returns the part that is arriving if it is complete by its Content-Length and the bytes after it may be a delimiter. */
  private takeWhole(): ReplyPart | undefined {
    const { part, bytes } = this
    if (part === undefined || part.isDone || this.isFinal) return undefined
    const mimeEnd = endOfHead(bytes, part.start)
    const headEnd = mimeEnd === undefined ? undefined : endOfHead(bytes, mimeEnd)
    if (headEnd === undefined) return undefined
    const { head, bodyStart, length } = this.readHead(part.start, bytes.length)
    if (bytes.length - bodyStart > MAX_PART_BYTES) throw tooLong()
    const end = bodyStart + (length ?? (head.status === 204 ? 0 : Infinity))
    if (end > bytes.length || !this.mayEnd(end)) return undefined
    part.isDone = true
    return this.toPart(head, bodyStart, end)
  }

  private toPart(head: Omit<ReplyPart, 'body'>, start: number, end: number): ReplyPart {
    if (end - start > MAX_PART_BYTES) throw tooLong()
    return { ...head, body: this.bytes.toString('utf8', start, end).trim() }
  }

  /** Reads the headers and the status line of a part. `length` is its Content-Length, or `undefined` if it has none. */
  private readHead(
    start: number,
    end: number,
  ): {
    readonly head: Omit<ReplyPart, 'body'>
    readonly bodyStart: number
    readonly length: number | undefined
  } {
    const { bytes } = this
    const mime = readHeaders(bytes, start, end, defaultBatchLimits, {})
    const line = lineEnd(bytes, mime.end, end)
    const text = bytes.toString('latin1', mime.end, Math.min(line.text, mime.end + MAX_STATUS_LINE_BYTES))
    const [, status, reason = ''] = /^HTTP\/1\.\d (\d{3})(?: (.*))?$/.exec(text) ?? []
    if (status === undefined)
      throw new AdapterError('ADP_REQUEST_LINE', 'A part of the reply has no status line.')
    const http = readHeaders(bytes, line.next, end, defaultBatchLimits, {})
    const digits = /^\d{1,15}$/.exec(valuesOf(http.lines, 'content-length')[0] ?? '')?.[0]
    const head = {
      contentId: valuesOf(mime.lines, 'content-id')[0] ?? valuesOf(http.lines, 'content-id')[0],
      status: Number(status),
      reason,
      mime: mime.lines,
      http: http.lines,
      changeset: this.boundaries.length > 1 ? this.changesets : undefined,
    }
    return { head, bodyStart: http.end, length: digits === undefined ? undefined : Number(digits) }
  }

  /** Returns true if the bytes from `end` on are a delimiter or the beginning of a delimiter. */
  private mayEnd(end: number): boolean {
    const delimiter = `--${this.boundaries.at(-1) ?? ''}`
    const rest = this.bytes.toString('latin1', end, end + delimiter.length + 2)
    return ['\r\n', '\n'].some((eol) => {
      const expected = eol + delimiter
      return expected.startsWith(rest) || rest.startsWith(expected)
    })
  }
}

function boundaryOfChangeset(contentType: string): string {
  try {
    return readBoundary(contentType)
  } catch (cause) {
    if (!(cause instanceof AdapterError)) throw cause
    // The message of `readBoundary` is written for the sender of a request, so another message replaces it.
    throw new AdapterError(cause.code, 'A changeset of the reply has no valid boundary.', { cause })
  }
}

const tooLong = (): AdapterError =>
  new AdapterError('ADP_LIMIT', `A part of the reply exceeds the limit of ${formatBytes(MAX_PART_BYTES)}.`)

/** Maximum number of bytes that are read of a status line. A longer line is truncated. */
const MAX_STATUS_LINE_BYTES = 1_024
const LF = 0x0a

/** Returns the offset after the blank line that ends a block of headers, or `undefined` if no such line has arrived within the limit. */
function endOfHead(bytes: Buffer, from: number, to = bytes.length): number | undefined {
  for (let at = from; at < Math.min(to, from + defaultBatchLimits.maxPartHeaderBytes);) {
    const { text, next } = lineEnd(bytes, at, to)
    if (bytes[next - 1] !== LF) return undefined
    if (text === at) return next
    at = next
  }
  return undefined
}
