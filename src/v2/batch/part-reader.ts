import type { ErrorLocation } from '../../errors.ts'
import { type HeadOptions, type PartHead, readHead } from '../http-part/head.ts'
import { type HeaderLines, overLimit } from '../http-part/headers.ts'

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
export class PartReader {
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
    // An id in both places would have to be held equal twice; such parts are parsed each.
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
