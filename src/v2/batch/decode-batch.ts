import { isAscii, isUtf8 } from 'node:buffer'

import { AdapterError, type ErrorLocation } from '../../errors.ts'
import { formatBytes, tooLarge } from '../../http/body.ts'
import { parseMediaType } from '../../http/media-type.ts'
import { checkTransferEncoding, multipartEncodings, type PartHead } from '../http-part/head.ts'
import { readHeaders, valuesOf } from '../http-part/headers.ts'
import { type BatchLimits, defaultBatchLimits } from '../limits.ts'
import { boundaryOf, NearDelimiters, type PartRange, readBoundary, splitParts } from '../multipart/parts.ts'
import { chooseBoundary } from '../multipart/envelope.ts'
import { decodeRecord, decodeText, type RecordFault, type RecordResult } from '../record/decode-record.ts'
import { type Batch, type BatchPart, idsAgree } from './batch.ts'
import { PartReader } from './part-reader.ts'

export interface DecodeOptions {
  readonly limits?: BatchLimits
  /** Host names, in lower case and without port, that absolute URLs in request lines may have; undefined: any. */
  readonly serviceHosts?: ReadonlySet<string>
}

/** A batch that is decoded in steps. */
interface BatchDecoding {
  /** Decodes about `work` more bytes; a small part counts as `MIN_PART_WORK`. True once the batch is decoded. */
  advance(work: number): boolean
  /** The batch; available once `advance` has returned true. */
  batch(): Batch
}

/**
 * Decodes a V2 `$batch` body whole (service.md 4.2; batch-wire 1 and 4). Returns only when the envelope is sound, so that
 * nothing is posted from a broken one; a fault inside one record is kept in its part.
 *
 * `bytes` is the decompressed body, `contentType` the header of the request. The result refers to no bytes of the body.
 * Errors: `AdapterError` of class `request` with the byte offset: `ADP_MEDIA_TYPE`, `ADP_BOUNDARY`, `ADP_TRUNCATED`,
 * `ADP_NESTING`, `ADP_PART_TYPE`, `ADP_PART_ENCODING`, `ADP_HEADER`, `ADP_CONTENT_ID`, `ADP_REQUEST_LINE`, `ADP_TARGET`,
 * `ADP_LIMIT`, `ADP_TOO_LARGE`.
 */
export function decodeBatch(
  bytes: Buffer,
  contentType: string | undefined,
  options: DecodeOptions = {},
): Batch {
  const decoding = openBatchDecoding(bytes, contentType, options)
  decoding.advance(Infinity)
  return decoding.batch()
}

/** `decodeBatch` in steps, between which the caller can do other work. Errors are thrown here and by `advance`. */
export function openBatchDecoding(
  bytes: Buffer,
  contentType: string | undefined,
  options: DecodeOptions = {},
): BatchDecoding {
  const limits = options.limits ?? defaultBatchLimits
  const headerBoundary = readBoundary(contentType)
  if (bytes.length > limits.maxBodyBytes) {
    throw tooLarge(limits.maxBodyBytes, bytes.length)
  }
  return new BatchDecoder(bytes, headerBoundary, limits, options.serviceHosts)
}

/** The cost of a small part, in bytes. */
const MIN_PART_WORK = 1_024
/** The cost of one step of the search for the boundary, in bytes. */
const SEARCH_STEP_WORK = 524_288
const NO_BYTES: PartRange = { start: 0, end: 0 }

/** The state of one decoding. */
class BatchDecoder implements BatchDecoding {
  private readonly parts: BatchPart[] = []
  private readonly changesets: string[] = []
  private readonly bytes: Buffer
  private readonly headerBoundary: string
  private readonly limits: BatchLimits
  private readonly near: NearDelimiters
  private readonly reader: PartReader
  private readonly ascii: boolean
  private readonly utf8: boolean
  private readonly from: number
  private readonly choosing: Generator<void, string>
  private boundary: string | undefined
  private outer: Iterator<PartRange, void> | undefined
  /** The parts of the changeset that is being read. */
  private inner: Iterator<PartRange, void> | undefined

  constructor(
    bytes: Buffer,
    headerBoundary: string,
    limits: BatchLimits,
    serviceHosts: ReadonlySet<string> | undefined,
  ) {
    this.bytes = bytes
    this.headerBoundary = headerBoundary
    this.limits = limits
    this.near = new NearDelimiters(limits.maxParts)
    this.reader = new PartReader(bytes, { limits, serviceHosts })
    this.ascii = isAscii(bytes)
    this.utf8 = this.ascii || isUtf8(bytes)
    const bom = bytes.length >= 3 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
    this.from = bom ? 3 : 0 // batch-wire F3
    this.choosing = chooseBoundary(bytes, headerBoundary, this.from, limits, this.near)
  }

  advance(work: number): boolean {
    let left = this.search(work)
    while (left > 0) {
      const range = this.next()
      if (range === undefined) return true
      left -= Math.max(MIN_PART_WORK, range.end - range.start)
    }
    return false
  }

  batch(): Batch {
    const { headerBoundary, boundary = headerBoundary, changesets, parts } = this
    return { boundary, changesets, idsAgree: idsAgree(headerBoundary, [boundary, ...changesets]), parts }
  }

  /** Searches for the boundary, once; returns the rest of the work. */
  private search(work: number): number {
    if (this.boundary !== undefined) return work
    for (let left = work; left > 0; left -= SEARCH_STEP_WORK) {
      const step = this.choosing.next()
      if (step.done !== true) continue
      this.open(step.value)
      return left
    }
    return 0
  }

  private open(boundary: string): void {
    this.boundary = boundary
    this.outer = this.split(boundary, { start: this.from, end: this.bytes.length }, {})
  }

  private split(boundary: string, { start, end }: PartRange, at: ErrorLocation): Iterator<PartRange, void> {
    const options = { maxPadding: this.limits.maxBoundaryPadding, near: this.near, at }
    return splitParts(this.bytes, boundary, start, end, options)
  }

  /** Reads the next part, of the batch or of the changeset that is being read; undefined at the end of the batch. */
  private next(): PartRange | undefined {
    const inner = this.inner?.next()
    if (inner !== undefined && inner.done !== true) {
      this.readInnerPart(inner.value)
      return inner.value
    }
    this.inner = undefined
    const outer = this.outer?.next()
    if (outer === undefined || outer.done === true) return undefined
    const { length } = this.parts
    this.readOuterPart(outer.value)
    // A changeset's bytes count with its parts.
    return this.parts.length > length ? outer.value : NO_BYTES
  }

  private readOuterPart(range: PartRange): void {
    const known = this.reader.readAlike(range.start, range.end)
    if (known !== undefined) {
      this.addPart(range, known, undefined)
      return
    }
    const at: ErrorLocation = { part: this.parts.length + 1, offset: range.start }
    const { lines, end, closed } = readHeaders(this.bytes, range.start, range.end, this.limits, at)
    const media = this.mediaTypeOf(valuesOf(lines, 'content-type')[0], at)
    if (media.type !== 'multipart/mixed') {
      if (!closed) throw noBlankLine(at)
      this.addPart(range, this.reader.read(range.start, lines, end, range.end, at), undefined)
      return
    }
    checkTransferEncoding(lines, multipartEncodings, at)
    const changeset = boundaryOf(media, at)
    if (changeset === this.boundary) {
      throw new AdapterError('ADP_NESTING', 'Batch and changeset have the same boundary. Use two.', { at })
    }
    // An empty changeset costs as much as a record.
    if (this.changesets.length === this.limits.maxParts) throw tooMany('changesets', this.limits, at)
    this.changesets.push(changeset)
    const content = { start: end, end: range.end }
    this.inner = this.split(changeset, content, { changeset: this.changesets.length })
  }

  private readInnerPart(range: PartRange): void {
    const changeset = this.changesets.length
    const head = this.reader.readAlike(range.start, range.end) ?? this.readInnerHead(range, changeset)
    this.addPart(range, head, changeset)
  }

  private readInnerHead(range: PartRange, changeset: number): PartHead {
    const at: ErrorLocation = { changeset, part: this.parts.length + 1, offset: range.start }
    const { lines, end, closed } = readHeaders(this.bytes, range.start, range.end, this.limits, at)
    const media = this.mediaTypeOf(valuesOf(lines, 'content-type')[0], at)
    if (media.type === 'multipart/mixed') {
      throw new AdapterError('ADP_NESTING', 'A changeset holds another changeset. Put both into the batch.', {
        at,
      })
    }
    if (!closed) throw noBlankLine(at)
    return this.reader.read(range.start, lines, end, range.end, at)
  }

  /** The type of a part: a record or, where the caller allows it, a changeset (batch-wire F13). */
  private mediaTypeOf(contentType: string | undefined, at: ErrorLocation): ReturnType<typeof parseMediaType> {
    const media = contentType === undefined ? undefined : parsePartType(contentType, at)
    if (media?.type === 'application/http' || media?.type === 'multipart/mixed') return media
    throw new AdapterError(
      'ADP_PART_TYPE',
      'The Content-Type of a part must be application/http, or multipart/mixed for a changeset.',
      { at },
    )
  }

  private addPart(range: PartRange, head: PartHead, changeset: number | undefined): void {
    const part = this.parts.length + 1
    if (part > this.limits.maxParts) throw tooMany('records', this.limits, { part, offset: range.start })
    const result = this.readRecord(head, part, range.end)
    this.parts.push({
      part,
      changeset,
      contentId: head.contentId,
      contentIdInHttp: head.contentIdInHttp,
      prefersMinimal: head.prefersMinimal,
      metadata: head.metadata,
      record: result.record,
      faults: result.faults,
      start: head.bodyStart,
      end: range.end,
    })
  }

  private readRecord(head: PartHead, part: number, end: number): RecordResult {
    if (head.method !== 'POST' || head.target === 'entity') {
      return refused({ code: 'ADP_METHOD', message: 'Only POST to AttendanceRecords is served in a batch.' })
    }
    const bytes = end - head.bodyStart
    if (bytes > this.limits.maxPartBytes) return refused(tooLong(part, bytes, this.limits.maxPartBytes))
    const text = this.textOf(head.charset, head.bodyStart, end)
    return typeof text === 'string' ? decodeRecord(text, this.limits) : refused(text)
  }

  /** The JSON text in the charset of the part; what is known of the whole body saves reading it twice. */
  private textOf(charset: PartHead['charset'], start: number, end: number): string | RecordFault {
    const { bytes } = this
    if (this.ascii && charset !== 'other') return bytes.toString('latin1', start, end)
    if (this.utf8 && charset === undefined) return bytes.toString('utf8', start, end)
    return decodeText(bytes.subarray(start, end), charset)
  }
}

function parsePartType(contentType: string, at: ErrorLocation): ReturnType<typeof parseMediaType> {
  if (/^\s*multipart\/mixed/i.test(contentType)) readBoundary(contentType, at)
  try {
    return parseMediaType(contentType)
  } catch (cause) {
    throw new AdapterError('ADP_PART_TYPE', 'The Content-Type of a part cannot be read.', { at, cause })
  }
}

function refused(fault: RecordFault): RecordResult {
  return { record: undefined, faults: [fault] }
}

function tooLong(part: number, bytes: number, limit: number): RecordFault {
  const message = `Part ${part} has a record of ${formatBytes(bytes)}; the limit is ${formatBytes(limit)}.`
  return { code: 'ADP_RECORD_LIMIT', message }
}

function tooMany(what: string, limits: BatchLimits, at: ErrorLocation): AdapterError {
  return new AdapterError('ADP_TOO_LARGE', `The batch has more than ${limits.maxParts} ${what}, the limit.`, {
    at,
  })
}

function noBlankLine(at: ErrorLocation): AdapterError {
  return new AdapterError(
    'ADP_HEADER',
    'A part has no blank line after its MIME headers. Send one, then the request line.',
    { at },
  )
}
