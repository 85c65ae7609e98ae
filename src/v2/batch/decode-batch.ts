import { isAscii, isUtf8 } from 'node:buffer'

import { AdapterError, type ErrorCode, type ErrorLocation } from '../../errors.ts'
import { formatBytes, tooLarge } from '../../http/body.ts'
import { type MediaType, parseMediaType } from '../../http/media-type.ts'
import { runAtOnce, type Steps } from '../../http/slices.ts'
import {
  checkTransferEncoding,
  type HeadOptions,
  multipartEncodings,
  type PartHead,
  type Preferences,
  readHead,
} from '../http-part/head.ts'
import { type HeaderLines, headersTooLong, readHeaders, valuesOf } from '../http-part/headers.ts'
import { type BatchLimits, defaultBatchLimits } from '../limits.ts'
import { chooseBoundary } from '../multipart/envelope.ts'
import { describeMisencoding } from '../multipart/misencoded.ts'
import { boundaryOf, NearDelimiters, type PartRange, readBoundary, splitParts } from '../multipart/parts.ts'
import {
  decodeRecord,
  decodeText,
  type FlatRecord,
  type RecordFault,
  type RecordResult,
} from '../record/decode-record.ts'

export const batchPath = /\/v2\/attendance\/\$batch\/?$/i

/** One part of a decoded batch, with either a record or the faults for which the record is refused. */
export interface BatchPart extends Preferences {
  /** The position in the batch, counted from 1. The parts of the reply have the same order. */
  readonly part: number
  /** The position of the part's changeset, counted from 1, or `undefined` if the part is directly under the batch (batch-wire F10). */
  readonly changeset: number | undefined
  readonly contentId: string | undefined
  /** True if the Content-ID was among the HTTP headers. The part of the reply then has it there too (batch-wire A3). */
  readonly contentIdInHttp: boolean
  readonly record: FlatRecord | undefined
  readonly faults: readonly RecordFault[] | undefined
  /** The byte range `[start, end)` of the record's JSON in the body. */
  readonly start: number
  readonly end: number
}

/** A decoded `$batch` request. Its envelope is complete, so its records may be posted. */
export interface Batch {
  /** The boundary that splits the body. This boundary may differ from the boundary in the header (batch-wire F12). */
  readonly boundary: string
  readonly changesets: readonly string[]
  /** False if the ids in the header and the body differ. The reply is then a single 200 without parts (batch-wire 3). */
  readonly idsAgree: boolean
  readonly parts: readonly BatchPart[]
}

export interface DecodeOptions {
  readonly limits?: BatchLimits
  /** The host names that absolute URLs in request lines may have, in lower case and without port. If `undefined`, any host is accepted. */
  readonly serviceHosts?: ReadonlySet<string>
}

/**
 * Decodes a whole V2 `$batch` body (service.md 4.2; batch-wire 1 and 4). Throws if the envelope is broken, so that no record of such a
 * batch is posted. A fault inside one record affects only its part.
 *
 * `bytes` is the decompressed body. The result keeps no reference to it. The thrown `AdapterError` has the class `request`, and the byte
 * offset if it is known. Its code is `ADP_MEDIA_TYPE`, `ADP_BOUNDARY`, `ADP_BODY`, `ADP_TRUNCATED`, `ADP_NESTING`, `ADP_PART_TYPE`,
 * `ADP_PART_ENCODING`, `ADP_HEADER`, `ADP_CONTENT_ID`, `ADP_REQUEST_LINE`, `ADP_TARGET`, `ADP_LIMIT` or `ADP_TOO_LARGE`.
 */
export function decodeBatch(bytes: Buffer, contentType: string | undefined, options?: DecodeOptions): Batch {
  return runAtOnce(decodeBatchInSteps(bytes, contentType, options))
}

/** Works as `decodeBatch`, but in steps, so that the caller can do other work between two steps. */
export function* decodeBatchInSteps(
  bytes: Buffer,
  contentType: string | undefined,
  { limits = defaultBatchLimits, serviceHosts }: DecodeOptions = {},
): Steps<Batch> {
  const headerBoundary = readBoundary(contentType)
  if (bytes.length > limits.maxBodyBytes) throw tooLarge(limits.maxBodyBytes, bytes.length)
  try {
    return yield* new BatchDecoder(bytes, limits, serviceHosts).decode(headerBoundary)
  } catch (cause) {
    const isFramingError = cause instanceof AdapterError && framingErrors.includes(cause.code)
    const message = isFramingError ? describeMisencoding(bytes) : undefined
    throw message === undefined ? cause : new AdapterError('ADP_BODY', message, { at: { offset: 0 }, cause })
  }
}

/** The codes of the errors that a body in UTF-16 or with wrong line ends causes, because its lines cannot be recognised. */
const framingErrors: readonly ErrorCode[] = ['ADP_TRUNCATED', 'ADP_HEADER']

const MIN_PART_WORK = 1_024

class BatchDecoder {
  private readonly parts: BatchPart[] = []
  private readonly changesets: string[] = []
  private readonly bytes: Buffer
  private readonly limits: BatchLimits
  private readonly partReader: PartReader
  private readonly near: NearDelimiters
  private readonly ascii: boolean
  private readonly utf8: boolean

  constructor(bytes: Buffer, limits: BatchLimits, serviceHosts: ReadonlySet<string> | undefined) {
    this.bytes = bytes
    this.limits = limits
    this.partReader = new PartReader(bytes, { limits, serviceHosts })
    this.near = new NearDelimiters(limits.maxParts)
    this.ascii = isAscii(bytes)
    this.utf8 = this.ascii || isUtf8(bytes)
  }

  *decode(headerBoundary: string): Steps<Batch> {
    const { bytes, limits, near, parts, changesets } = this
    const start = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0 // Skips a byte order mark (batch-wire F3).
    const boundary = yield* chooseBoundary(bytes, headerBoundary, start, limits, near)
    for (const range of this.split(boundary, { start, end: bytes.length }, {})) {
      if (typeof range === 'number') {
        yield range
        continue
      }
      const content = this.readPart(range, undefined, boundary)
      yield workOf(content === undefined ? range : NO_BYTES)
      if (content === undefined) continue
      const changeset = changesets.length
      for (const inner of this.split(changesets[changeset - 1] ?? '', content, { changeset })) {
        if (typeof inner === 'number') {
          yield inner
          continue
        }
        this.readPart(inner, changeset, boundary)
        yield workOf(inner)
      }
    }
    return { boundary, changesets, idsAgree: haveOneId(headerBoundary, [boundary, ...changesets]), parts }
  }

  private split(
    boundary: string,
    { start, end }: PartRange,
    at: ErrorLocation,
  ): Iterable<PartRange | number> {
    const options = { maxPadding: this.limits.maxBoundaryPadding, near: this.near, at }
    return splitParts(this.bytes, boundary, start, end, options)
  }

  /** Reads a part. Adds a record to the batch and returns `undefined`, or adds the boundary of a changeset and returns its content. */
  private readPart(
    range: PartRange,
    changeset: number | undefined,
    batchBoundary: string,
  ): PartRange | undefined {
    const { bytes, limits, partReader } = this
    const known = partReader.readByTemplate(range.start, range.end)
    if (known !== undefined) {
      this.addPart(range, known, changeset)
      return undefined
    }
    const part = { part: this.parts.length + 1, offset: range.start }
    const at: ErrorLocation = changeset === undefined ? part : { changeset, ...part }
    const { lines, end, closed } = readHeaders(bytes, range.start, range.end, limits, at)
    const media = mediaTypeOf(valuesOf(lines, 'content-type')[0], at)
    if (media.type === RECORD_PART.type) {
      if (!closed) throw noBlankLine(at)
      this.addPart(range, partReader.read(range.start, lines, end, range.end, at), changeset)
      return undefined
    }
    if (changeset !== undefined) {
      const message =
        'A changeset contains another changeset. Nothing was posted. Put both directly into the batch.'
      throw new AdapterError('ADP_NESTING', message, { at })
    }
    checkTransferEncoding(lines, multipartEncodings, at)
    const boundary = boundaryOf(media, at)
    if (boundary === batchBoundary) {
      const message =
        'The batch and a changeset have the same boundary. Nothing was posted. Use two different boundaries.'
      throw new AdapterError('ADP_NESTING', message, { at })
    }
    // Changesets have the same limit as records, because even an empty changeset costs as much work as a record.
    if (this.changesets.length === limits.maxParts) throw tooMany('changesets', limits, at)
    this.changesets.push(boundary)
    return { start: end, end: range.end }
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
      const message =
        'A batch accepts only POST to AttendanceRecords. This part was not sent. Send the request outside the batch.'
      return refused({ code: 'ADP_METHOD', message })
    }
    const bytes = end - head.bodyStart
    if (bytes > this.limits.maxPartBytes) return refused(tooLong(part, bytes, this.limits.maxPartBytes))
    const text = this.textOf(head.charset, head.bodyStart, end)
    return typeof text === 'string' ? decodeRecord(text, this.limits) : refused(text)
  }

  /**
   * Returns the JSON text of a part, or a fault of its charset. Uses one UTF-8 check of the whole body in place of a check for each part.
   */
  private textOf(charset: PartHead['charset'], start: number, end: number): string | RecordFault {
    const { bytes } = this
    if (this.ascii && charset !== 'other') return bytes.toString('latin1', start, end)
    if (this.utf8 && charset === undefined) return bytes.toString('utf8', start, end)
    return decodeText(bytes.subarray(start, end), charset)
  }
}

const NO_BYTES: PartRange = { start: 0, end: 0 }

function workOf({ start, end }: PartRange): number {
  return Math.max(MIN_PART_WORK, end - start)
}

const RECORD_PART: MediaType = { type: 'application/http', parameters: [] }

/** Returns the media type of a part. Throws `ADP_PART_TYPE` if the part is neither a record nor a changeset (batch-wire F13). */
function mediaTypeOf(contentType: string | undefined, at: ErrorLocation): MediaType {
  if (contentType === RECORD_PART.type) return RECORD_PART
  const media = contentType === undefined ? undefined : parsePartType(contentType, at)
  if (media?.type === RECORD_PART.type || media?.type === 'multipart/mixed') return media
  throw new AdapterError(
    'ADP_PART_TYPE',
    'The Content-Type of a part is neither application/http nor multipart/mixed. Nothing was posted. Send one of these types.',
    { at },
  )
}

function parsePartType(contentType: string, at: ErrorLocation): MediaType {
  if (/^\s*multipart\/mixed/i.test(contentType)) readBoundary(contentType, at)
  try {
    return parseMediaType(contentType)
  } catch (cause) {
    const message =
      'The Content-Type of a part is malformed. Nothing was posted. Send application/http, or multipart/mixed for a changeset.'
    throw new AdapterError('ADP_PART_TYPE', message, { at, cause })
  }
}

function refused(fault: RecordFault): RecordResult {
  return { record: undefined, faults: [fault] }
}

function tooLong(part: number, bytes: number, limit: number): RecordFault {
  const message = `The record of part ${part} has ${formatBytes(bytes)}; the limit is ${formatBytes(limit)}. The record was not posted. Send a shorter record.`
  return { code: 'ADP_RECORD_LIMIT', message }
}

function tooMany(what: string, limits: BatchLimits, at: ErrorLocation): AdapterError {
  const message = `The batch exceeds the limit of ${limits.maxParts} ${what}. Nothing was posted. Send smaller batches.`
  return new AdapterError('ADP_TOO_LARGE', message, { at })
}

function noBlankLine(at: ErrorLocation): AdapterError {
  return new AdapterError(
    'ADP_HEADER',
    'A part has no blank line after its MIME headers. Nothing was posted. Send a blank line, then the request line.',
    { at },
  )
}

const GUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/i

/** Returns true if the boundary in the header equals a boundary in the body or contains the same GUID: the id rule (batch-wire 3). */
function haveOneId(headerBoundary: string, delimiters: readonly string[]): boolean {
  const id = guidOf(headerBoundary)
  return delimiters.some((own) => own === headerBoundary || (id !== undefined && guidOf(own) === id))
}

function guidOf(boundary: string): string | undefined {
  return GUID.exec(boundary)?.[0].toLowerCase()
}

interface Template {
  readonly start: number
  readonly idStart: number
  readonly idEnd: number
  readonly end: number
  readonly head: PartHead
}

/** Reads the heads of parts. Most heads differ from the last parsed head only in the Content-ID, and are therefore not parsed again. */
class PartReader {
  private template: Template | undefined
  private readonly bytes: Buffer
  private readonly options: HeadOptions

  constructor(bytes: Buffer, options: HeadOptions) {
    this.bytes = bytes
    this.options = options
  }

  /** Returns the head of a part whose bytes match the last parsed head, or `undefined` if the head must be parsed. */
  readByTemplate(start: number, end: number): PartHead | undefined {
    const known = this.template
    if (known === undefined) return undefined
    const bytes = this.bytes
    const before = known.idStart - known.start
    const idStart = start + before
    if (known.head.contentId === undefined) {
      const same = idStart <= end && this.sameBytes(known.start, start, before)
      return same ? { ...known.head, bodyStart: idStart } : undefined
    }
    if (idStart >= end || !this.sameBytes(known.start, start, before)) return undefined
    let idEnd = idStart
    for (let byte = bytes[idEnd] ?? 0; byte > 0x20 && byte < 0x7f && idEnd < end; byte = bytes[idEnd] ?? 0)
      idEnd += 1
    const after = known.end - known.idEnd
    if (idEnd === idStart || idEnd + after > end || !this.sameBytes(known.idEnd, idEnd, after))
      return undefined
    if (idEnd + after - start > this.options.limits.maxPartHeaderBytes) return undefined
    const contentId = bytes.toString('latin1', idStart, idEnd)
    return { ...known.head, contentId, bodyStart: idEnd + after }
  }

  read(start: number, mime: HeaderLines, contentStart: number, end: number, at: ErrorLocation): PartHead {
    const head = readHead(this.bytes, mime, contentStart, end, this.options, at)
    if (head.bodyStart - start > this.options.limits.maxPartHeaderBytes) {
      throw headersTooLong(this.options.limits, at)
    }
    this.template = this.toTemplate(start, mime, head)
    return head
  }

  private toTemplate(start: number, mime: HeaderLines, head: PartHead): Template | undefined {
    const { contentId, bodyStart } = head
    if (!head.closed) return undefined
    if (contentId === undefined) return { start, idStart: bodyStart, idEnd: bodyStart, end: bodyStart, head }
    if (!/^[\u0021-\u007e]+$/.test(contentId)) return undefined
    // A template has only one position for the Content-ID, so a head with a Content-ID in both the MIME and the HTTP headers is no
    // template.
    if (head.contentIdInHttp && mime.some(([name]) => name === 'content-id')) return undefined
    const [idStart, ...others] = this.idPositions(start, bodyStart, contentId)
    if (idStart === undefined || others.length > 0) return undefined
    return { start, idStart, idEnd: idStart + contentId.length, end: bodyStart, head }
  }

  /** Returns the offset of this id in each Content-ID line. A line with another id adds -1 twice, so that the head cannot be a template. */
  private idPositions(start: number, end: number, contentId: string): number[] {
    const text = this.bytes.toString('latin1', start, end)
    const found: number[] = []
    for (const match of text.matchAll(/^(content-id[ \t]*:[ \t]*)([^\r\n]*)\r?$/gim)) {
      if (match[2] === contentId) found.push(start + match.index + (match[1]?.length ?? 0))
      else found.push(-1, -1)
    }
    return found
  }

  private sameBytes(known: number, candidate: number, length: number): boolean {
    const bytes = this.bytes
    if (candidate + length > bytes.length) return false
    return bytes.compare(bytes, known, known + length, candidate, candidate + length) === 0
  }
}
