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
import { type HeaderLines, overLimit, readHeaders, valuesOf } from '../http-part/headers.ts'
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

/** The decoded path of the V2 batch write, under any prefix and in any case. */
export const batchPath = /\/v2\/attendance\/\$batch\/?$/i

/** One part of a decoded batch: a record, or the faults for which it cannot be posted. */
export interface BatchPart extends Preferences {
  /** Position in the batch, from 1: the reply has its parts in this order. */
  readonly part: number
  /** Position of its changeset, from 1; undefined for a part directly under the batch (batch-wire F10). */
  readonly changeset: number | undefined
  readonly contentId: string | undefined
  /** True if the Content-ID was among the HTTP headers; the reply puts it there, too (batch-wire A3). */
  readonly contentIdInHttp: boolean
  /** The record; undefined exactly when `faults` is defined. */
  readonly record: FlatRecord | undefined
  readonly faults: readonly RecordFault[] | undefined
  /** Byte offsets `[start, end)` of the JSON in the body. */
  readonly start: number
  readonly end: number
}

/** A decoded `$batch` request: its envelope is complete, so its records may be posted. */
export interface Batch {
  /** The boundary that frames the body. */
  readonly boundary: string
  /** The boundary of each changeset, in order. */
  readonly changesets: readonly string[]
  /** False when the ids of header and body differ: the answer is a single 200 (batch-wire 3). */
  readonly idsAgree: boolean
  readonly parts: readonly BatchPart[]
}

export interface DecodeOptions {
  readonly limits?: BatchLimits
  /** Host names, in lower case and without port, that absolute URLs in request lines may have; undefined: any. */
  readonly serviceHosts?: ReadonlySet<string>
}

/**
 * Decodes a V2 `$batch` body whole (service.md 4.2; batch-wire 1 and 4). Returns only when the envelope is sound, so that
 * nothing is posted from a broken one; a fault inside one record is kept in its part.
 *
 * `bytes` is the decompressed body, `contentType` the header of the request. The result refers to no bytes of the body.
 * Errors: `AdapterError` of class `request` with the byte offset: `ADP_MEDIA_TYPE`, `ADP_BOUNDARY`, `ADP_BODY`, `ADP_TRUNCATED`,
 * `ADP_NESTING`, `ADP_PART_TYPE`, `ADP_PART_ENCODING`, `ADP_HEADER`, `ADP_CONTENT_ID`, `ADP_REQUEST_LINE`, `ADP_TARGET`,
 * `ADP_LIMIT`, `ADP_TOO_LARGE`.
 */
export function decodeBatch(bytes: Buffer, contentType: string | undefined, options?: DecodeOptions): Batch {
  return runAtOnce(decodeBatchInSteps(bytes, contentType, options))
}

/** `decodeBatch` in steps, between which the caller can do other work. */
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
    const isUnframed = cause instanceof AdapterError && unframed.includes(cause.code)
    const message = isUnframed ? describeMisencoding(bytes) : undefined
    throw message === undefined ? cause : new AdapterError('ADP_BODY', message, { at: { offset: 0 }, cause })
  }
}

/** The errors of a body in which lines cannot be told apart. */
const unframed: readonly ErrorCode[] = ['ADP_TRUNCATED', 'ADP_HEADER']

/** The cost of a small part, in bytes. */
const MIN_PART_WORK = 1_024

/** The state of one decoding. */
class BatchDecoder {
  private readonly parts: BatchPart[] = []
  private readonly changesets: string[] = []
  private readonly bytes: Buffer
  private readonly limits: BatchLimits
  private readonly heads: PartReader
  private readonly near: NearDelimiters
  private readonly ascii: boolean
  private readonly utf8: boolean

  constructor(bytes: Buffer, limits: BatchLimits, serviceHosts: ReadonlySet<string> | undefined) {
    this.bytes = bytes
    this.limits = limits
    this.heads = new PartReader(bytes, { limits, serviceHosts })
    this.near = new NearDelimiters(limits.maxParts)
    this.ascii = isAscii(bytes)
    this.utf8 = this.ascii || isUtf8(bytes)
  }

  *decode(headerBoundary: string): Steps<Batch> {
    const { bytes, limits, near, parts, changesets } = this
    const start = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0 // batch-wire F3
    const boundary = yield* chooseBoundary(bytes, headerBoundary, start, limits, near)
    for (const range of this.split(boundary, { start, end: bytes.length }, {})) {
      if (typeof range === 'number') {
        yield range
        continue
      }
      const content = this.readPart(range, undefined, boundary)
      yield workOf(content === undefined ? range : NO_BYTES)
      // A changeset's bytes count with its parts.
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

  /** Reads a record, or the headers of a changeset: its content is returned, its boundary is the last one of `changesets` then. */
  private readPart(
    range: PartRange,
    changeset: number | undefined,
    batchBoundary: string,
  ): PartRange | undefined {
    const { bytes, limits, heads } = this
    const alike = heads.readAlike(range.start, range.end)
    if (alike !== undefined) {
      this.addPart(range, alike, changeset)
      return undefined
    }
    const part = { part: this.parts.length + 1, offset: range.start }
    const at: ErrorLocation = changeset === undefined ? part : { changeset, ...part }
    const { lines, end, closed } = readHeaders(bytes, range.start, range.end, limits, at)
    const media = mediaTypeOf(valuesOf(lines, 'content-type')[0], at)
    if (media.type === RECORD_PART.type) {
      if (!closed) throw noBlankLine(at)
      this.addPart(range, heads.read(range.start, lines, end, range.end, at), changeset)
      return undefined
    }
    if (changeset !== undefined) {
      const message = 'A changeset holds another changeset. Put both into the batch.'
      throw new AdapterError('ADP_NESTING', message, { at })
    }
    checkTransferEncoding(lines, multipartEncodings, at)
    const boundary = boundaryOf(media, at)
    if (boundary === batchBoundary) {
      throw new AdapterError('ADP_NESTING', 'Batch and changeset have the same boundary. Use two.', { at })
    }
    // An empty changeset costs as much as a record.
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

const NO_BYTES: PartRange = { start: 0, end: 0 }

function workOf({ start, end }: PartRange): number {
  return Math.max(MIN_PART_WORK, end - start)
}

const RECORD_PART: MediaType = { type: 'application/http', parameters: [] }

/** The type of a part: a record or, where the caller allows it, a changeset (batch-wire F13). */
function mediaTypeOf(contentType: string | undefined, at: ErrorLocation): MediaType {
  if (contentType === RECORD_PART.type) return RECORD_PART
  const media = contentType === undefined ? undefined : parsePartType(contentType, at)
  if (media?.type === RECORD_PART.type || media?.type === 'multipart/mixed') return media
  throw new AdapterError(
    'ADP_PART_TYPE',
    'The Content-Type of a part must be application/http, or multipart/mixed for a changeset.',
    { at },
  )
}

function parsePartType(contentType: string, at: ErrorLocation): MediaType {
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

const GUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/i

/**
 * The id rule (service.md 4.2, last paragraph; batch-wire 3): the header's boundary is one of the delimiters of the body,
 * or its guid is the guid of the batch or of a changeset.
 */
function haveOneId(headerBoundary: string, delimiters: readonly string[]): boolean {
  const id = guidOf(headerBoundary)
  return delimiters.some((own) => own === headerBoundary || (id !== undefined && guidOf(own) === id))
}

function guidOf(boundary: string): string | undefined {
  return GUID.exec(boundary)?.[0].toLowerCase()
}

/** The head of the last part in bytes, around the text of its Content-ID. */
interface Template {
  readonly start: number
  readonly idStart: number
  readonly idEnd: number
  readonly end: number
  readonly head: PartHead
}

/**
 * Reads part heads. Senders write the same head for every record but for the Content-ID, so the bytes of a head are first
 * held against those of the last one: equal before and after the id means equal in everything else, and nothing is parsed.
 */
class PartReader {
  private template: Template | undefined
  private readonly bytes: Buffer
  private readonly options: HeadOptions

  constructor(bytes: Buffer, options: HeadOptions) {
    this.bytes = bytes
    this.options = options
  }

  /** The head of a part that reads like the last one; undefined when it must be parsed. */
  readAlike(start: number, end: number): PartHead | undefined {
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

  /** Parses the HTTP request in a part and keeps it as the template for the next. */
  read(start: number, mime: HeaderLines, contentStart: number, end: number, at: ErrorLocation): PartHead {
    const head = readHead(this.bytes, mime, contentStart, end, this.options, at)
    if (head.bodyStart - start > this.options.limits.maxPartHeaderBytes) {
      throw overLimit(this.options.limits, at)
    }
    this.template = this.toTemplate(start, mime, head)
    return head
  }

  private toTemplate(start: number, mime: HeaderLines, head: PartHead): Template | undefined {
    const { contentId, bodyStart } = head
    // A head that its part's end has cut short may be longer in another part.
    if (!head.closed) return undefined
    if (contentId === undefined) return { start, idStart: bodyStart, idEnd: bodyStart, end: bodyStart, head }
    if (!/^[\u0021-\u007e]+$/.test(contentId)) return undefined
    // Ids in both places would have to be compared twice; such parts are parsed each.
    if (head.contentIdInHttp && mime.some(([name]) => name === 'content-id')) return undefined
    const [idStart, ...others] = this.idPositions(start, bodyStart, contentId)
    if (idStart === undefined || others.length > 0) return undefined
    return { start, idStart, idEnd: idStart + contentId.length, end: bodyStart, head }
  }

  /** Where header lines named Content-ID hold exactly this id. */
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
