import { AdapterError } from '../../errors.ts'
import { runAtOnce, type Steps } from '../../http/slices.ts'
import { type HeaderLines, lineEnd, readHeaders, valuesOf } from '../http-part/headers.ts'
import { defaultBatchLimits } from '../limits.ts'
import { contentEnd, createDelimiterFinder, type Delimiter, readBoundary } from '../multipart/parts.ts'

/** One part of a batch reply. */
export interface ReplyPart {
  /** From the MIME headers, else from the HTTP headers. */
  readonly contentId: string | undefined
  /** Position of the changeset response that it stands in, from 1; undefined: directly under the batch. */
  readonly changeset: number | undefined
  readonly mime: HeaderLines
  readonly status: number
  /** The reason phrase of the status line; empty for none. */
  readonly reason: string
  readonly http: HeaderLines
  /** The text of the body; empty for none. */
  readonly body: string
}

/** A whole batch reply. */
export interface BatchReply {
  /** Changeset responses, also empty ones. */
  readonly changesets: number
  /** In order. The single 200 of the id rule has none. */
  readonly parts: readonly ReplyPart[]
}

/** A batch reply that is being read while it arrives. */
interface ReplyDecoding {
  /** Takes the next bytes; the parts that are whole by then. */
  push(chunk: Buffer): ReplyPart[]
  /** Ends the reply; returns the parts that this completes. Error: `ADP_TRUNCATED` for an incomplete reply. */
  end(): ReplyPart[]
}

/**
 * Decodes a V2 batch reply, flat or nested (batch-wire 2), as a client would. Errors: as `decodeBatch` for the envelope, `ADP_NESTING` for
 * changesets in changesets, `ADP_REQUEST_LINE` for a part without a status line, `ADP_LIMIT` for more parts than a batch may have.
 */
export function decodeBatchReply(bytes: Buffer, contentType: string | undefined): BatchReply {
  return runAtOnce(decodeBatchReplyInSteps(bytes, contentType))
}

/** `decodeBatchReply` in steps, between which the caller can do other work. */
export function* decodeBatchReplyInSteps(bytes: Buffer, contentType: string | undefined): Steps<BatchReply> {
  return yield* new ReplyDecoder(readBoundary(contentType)).decodeWhole(bytes)
}

/** As `decodeBatchReply`, for bytes that are still arriving. A part with the length of its body needs no delimiter behind it. */
export function openReplyDecoding(contentType: string | undefined): ReplyDecoding {
  return new ReplyDecoder(readBoundary(contentType))
}

/** The part that is being read. */
interface OpenPart {
  /** Offset of its headers. */
  readonly start: number
  /** True for the first part of its multipart body: when it is also the last and blank, the body is empty (batch-wire F11). */
  readonly isFirst: boolean
  /** True if the part was returned when its last byte arrived. */
  isDone: boolean
}

/** The cost of a part besides that of its bytes. */
const STEP_WORK = 512

class ReplyDecoder implements ReplyDecoding {
  private readonly parts: ReplyPart[] = []
  /** Changeset responses so far. */
  private changesets = 0
  /** The boundary of the batch and, within a changeset, that of the changeset; empty behind the end of the batch. */
  private readonly boundaries: string[]
  /** Bytes that are not read yet; `position` is where the search for the next delimiter begins. */
  private bytes: Buffer = Buffer.alloc(0)
  private position = 0
  private part: OpenPart | undefined
  private isFirst = true
  private isFinal = false

  constructor(boundary: string) {
    this.boundaries = [boundary]
  }

  push(chunk: Buffer): ReplyPart[] {
    this.bytes = Buffer.concat([this.bytes.subarray(this.position), chunk])
    if (this.part !== undefined) this.part = { ...this.part, start: 0 }
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

  /** Decodes a reply of which all bytes are there. */
  *decodeWhole(bytes: Buffer): Steps<BatchReply> {
    this.bytes = bytes
    this.isFinal = true
    yield* this.read()
    this.expectEnd()
    return { changesets: this.changesets, parts: this.parts }
  }

  /** Reads delimiter by delimiter, as far as the bytes go. */
  private *read(): Steps<void> {
    for (;;) {
      const boundary = this.boundaries.at(-1)
      if (boundary === undefined) return
      const from = this.position
      const next = this.findDelimiter(boundary)
      if (this.enterChangeset(next?.start)) continue
      const part = next === undefined ? this.takeWhole() : this.takePart(next)
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
    const message = 'The reply has no closing delimiter: it is cut off or its boundary is another.'
    throw new AdapterError('ADP_TRUNCATED', message)
  }

  /** The next delimiter with a complete line: further bytes could make it another line, or a closing one. */
  private findDelimiter(boundary: string): Delimiter | undefined {
    const { bytes } = this
    const found = createDelimiterFinder(
      bytes,
      boundary,
      defaultBatchLimits.maxBoundaryPadding,
    )(this.position, bytes.length)
    return found !== undefined && (this.isFinal || bytes[found.end - 1] === LF) ? found : undefined
  }

  private pass({ end, closing }: Delimiter): void {
    this.position = end
    this.part = closing ? undefined : { start: end, isFirst: this.isFirst, isDone: false }
    this.isFirst = false
    if (closing) this.boundaries.pop()
  }

  /** Goes on with the parts of a changeset, once its headers are there. `to`: where the part ends, where that is known. */
  private enterChangeset(to = this.bytes.length): boolean {
    const { part } = this
    if (part === undefined || part.isDone) return false
    if (endOfHead(this.bytes, part.start, to) === undefined) return false
    const at = {}
    const mime = readHeaders(this.bytes, part.start, to, defaultBatchLimits, at)
    const type = valuesOf(mime.lines, 'content-type')[0] ?? ''
    if (!/^multipart\//i.test(type)) return false
    // A reply is another's text: its depth is bounded like that of a request.
    if (this.boundaries.length > 1)
      throw new AdapterError('ADP_NESTING', 'A changeset of the reply holds another one.')
    this.boundaries.push(readBoundary(type, at))
    this.changesets += 1
    this.part = undefined
    this.isFirst = true
    this.position = mime.end
    return true
  }

  /** The part before a delimiter, unless it was given out already or the body is empty. */
  private takePart({ start, closing }: Delimiter): ReplyPart | undefined {
    const { part, bytes } = this
    if (part === undefined || part.isDone) return undefined
    const end = contentEnd(bytes, part.start, start)
    if (part.isFirst && closing && bytes.toString('latin1', part.start, end).trim() === '') return undefined
    return this.readReply(part.start, end).reply
  }

  /** The part that is being read, where its own length says that it is whole and nothing contradicts. */
  private takeWhole(): ReplyPart | undefined {
    const { part, bytes } = this
    if (part === undefined || part.isDone || this.isFinal) return undefined
    const mimeEnd = endOfHead(bytes, part.start)
    const headEnd = mimeEnd === undefined ? undefined : endOfHead(bytes, mimeEnd)
    if (headEnd === undefined) return undefined
    const { reply, length } = this.readReply(part.start, bytes.length)
    const end = headEnd + (length ?? (reply.status === 204 ? 0 : Infinity))
    if (end > bytes.length || !this.mayEnd(bytes.toString('latin1', end))) return undefined
    part.isDone = true
    return { ...reply, body: bytes.toString('utf8', headEnd, end).trim() }
  }

  private readReply(
    start: number,
    end: number,
  ): { readonly reply: ReplyPart; readonly length: number | undefined } {
    const { bytes } = this
    const mime = readHeaders(bytes, start, end, defaultBatchLimits, {})
    const line = lineEnd(bytes, mime.end, end)
    const text = bytes.toString('latin1', mime.end, line.text)
    const [, status, reason = ''] = /^HTTP\/1\.\d (\d{3})(?: (.*))?$/.exec(text) ?? []
    if (status === undefined)
      throw new AdapterError('ADP_REQUEST_LINE', 'A part of the reply has no status line.')
    const http = readHeaders(bytes, line.next, end, defaultBatchLimits, {})
    const digits = /^\d{1,15}$/.exec(valuesOf(http.lines, 'content-length')[0] ?? '')?.[0]
    const reply = {
      contentId: valuesOf(mime.lines, 'content-id')[0] ?? valuesOf(http.lines, 'content-id')[0],
      status: Number(status),
      reason,
      body: bytes.toString('utf8', http.end, end).trim(),
      mime: mime.lines,
      http: http.lines,
      changeset: this.boundaries.length > 1 ? this.changesets : undefined,
    }
    return { reply, length: digits === undefined ? undefined : Number(digits) }
  }

  /** True while the bytes after a body can become the next delimiter. */
  private mayEnd(rest: string): boolean {
    const delimiter = `--${this.boundaries.at(-1) ?? ''}`
    return ['\r\n', '\n'].some((eol) => {
      const expected = eol + delimiter
      return expected.startsWith(rest) || rest.startsWith(expected)
    })
  }
}

const LF = 0x0a

/** The offset behind the blank line of the first header block. */
function endOfHead(bytes: Buffer, from: number, to = bytes.length): number | undefined {
  for (let at = from; at < to;) {
    const { text, next } = lineEnd(bytes, at, to)
    if (bytes[next - 1] !== LF) return undefined
    if (text === at) return next
    at = next
  }
  return undefined
}
