import * as z from 'zod'

import { MAX_NODES_AT_ONCE, parseJson, ReplyFields } from '../../upstream/index.ts'
import { parsePostReply, type PostOutcome, type Unanswered } from '../outcome.ts'

export interface UpstreamReply {
  readonly status: number
  /** The bytes of the body. Empty if the reply has a status of 300 or above and was cut off. */
  readonly body: Buffer
  readonly contentType: string | undefined
  readonly retryAfter: string | undefined
  /** The outcome of the records without an answer if the reply was cut off, or `undefined` if the reply is complete. */
  readonly cut?: Unanswered | undefined
}

export type BatchResult =
  /**
   * One outcome for each record, in order. `sound` is true if each record had exactly one answer, or if one known outcome applies to the
   * whole batch. `sound` is `undefined` if the reply was cut off.
   */
  | {
      readonly kind: 'answered'
      readonly outcomes: readonly PostOutcome[]
      readonly sound: boolean | undefined
    }
  /** The upstream does not accept so many records or bytes, and applied nothing. `throttled` is the outcome of each record after a 429. */
  | { readonly kind: 'tooLong'; readonly throttled: PostOutcome | undefined }
  /** The upstream does not support `$batch`, or not in this format. Nothing was applied. */
  | { readonly kind: 'unsupported' }

const jsonReply = z.object({
  responses: z.array(
    z.object({
      id: z.string(),
      status: z.int(),
      headers: z.record(z.string(), z.unknown()).catch({}),
      body: z.unknown().optional(),
    }),
  ),
})

const unreadable: PostOutcome = { kind: 'unknown', reason: 'unreadableReply' }

/**
 * Reads the reply to a batch of `count` records with the ids 1 to `count`. Never throws. A 2xx except 202 is read part by part. The batch
 * is too long if the status is 413, or 429 without a time to wait (a 429 of the rate limit always names a time, service-facts 9). The
 * upstream does not support batches if it answers 501, or refuses the whole batch with another 4xx that is not about credentials or load.
 * Every other status, such as 401 or 500, is the outcome of every record.
 */
export function readBatchReply(reply: UpstreamReply, count: number, nowMs: number): BatchResult {
  const { status, body, contentType, retryAfter } = reply
  if (status >= 200 && status < 300) {
    // A 202 only announces an answer at another address, so the outcome of the records is unknown.
    const parts = status === 202 ? undefined : readAnswers(body, contentType)
    return matchAnswers(parts ?? [], count, nowMs, reply.cut)
  }
  if (status === 501) return { kind: 'unsupported' }
  if (status === 413) return { kind: 'tooLong', throttled: undefined }
  const outcome = parsePostReply(status, body.toString('utf8'), retryAfter, nowMs)
  if (status === 429 && outcome.kind === 'notApplied' && outcome.retryAfterMs === undefined)
    return { kind: 'tooLong', throttled: outcome }
  if (outcome.kind === 'refused' && status !== 401 && status !== 403) return { kind: 'unsupported' }
  const outcomes = Array<PostOutcome>(count).fill(outcome)
  return { kind: 'answered', outcomes, sound: outcome.kind !== 'unknown' }
}

function readAnswers(body: Buffer, contentType: string | undefined): AnswerPart[] | undefined {
  if (!/^application\/json\b/i.test(contentType ?? '')) return readMultipartAnswers(body, contentType)
  const reply = jsonReply.safeParse(parseJson(body.toString('utf8'), MAX_NODES_AT_ONCE))
  return reply.data?.responses.map(({ id, status, headers, body: own }) => ({
    id,
    status,
    retryAfter: toFields(headers).one('retry-after'),
    body: own === undefined ? '' : typeof own === 'string' ? own : JSON.stringify(own),
  }))
}

/** Converts header fields from JSON. Drops a value that is neither text nor a list of texts. */
const toFields = (headers: Readonly<Record<string, unknown>>): ReplyFields =>
  new ReplyFields(
    Object.entries(headers).flatMap(([name, values]) =>
      [values].flat().flatMap((value) => (typeof value === 'string' ? [name, value] : [])),
    ),
  )

/**
 * Assigns an answer to each record: by id if any part has an id, otherwise by position if the reply has as many parts as there are records.
 * A record without an answer, or with two answers, has an unknown outcome.
 */
function matchAnswers(
  parts: readonly AnswerPart[],
  count: number,
  nowMs: number,
  missing: Unanswered | undefined,
): BatchResult {
  const answers = new Map<string, AnswerPart | undefined>()
  if (parts.some(({ id }) => id !== undefined)) {
    for (const part of parts)
      if (part.id !== undefined) answers.set(part.id, answers.has(part.id) ? undefined : part)
  } else if (parts.length === count) {
    parts.forEach((part, index) => answers.set(String(index + 1), part))
  }
  let sound = parts.length === count
  const outcomes = Array.from({ length: count }, (_, index) => {
    const part = answers.get(String(index + 1))
    if (part !== undefined) return parsePostReply(part.status, part.body, part.retryAfter, nowMs)
    sound = false
    return missing ?? unreadable
  })
  return { kind: 'answered', outcomes, sound: missing === undefined ? sound : undefined }
}

interface AnswerPart {
  /** The Content-ID of a multipart part, or the id of a JSON part, or `undefined` if the part has neither. */
  readonly id: string | undefined
  readonly status: number
  readonly retryAfter: string | undefined
  readonly body: string
}

/** Reads each part of a multipart reply, or of its changesets, that ends at a delimiter. Returns `undefined` for any other media type. */
function readMultipartAnswers(body: Buffer, contentType: string | undefined): AnswerPart[] | undefined {
  const boundary = boundaryOf(contentType ?? '')
  return boundary === undefined ? undefined : readParts(body.toString('latin1'), boundary, true)
}

function readParts(text: string, boundary: string, mayNest: boolean): AnswerPart[] {
  return splitParts(text, boundary).flatMap((part) => {
    const { fields, content } = readHead(part)
    const nested = mayNest ? boundaryOf(fields.one('content-type') ?? '') : undefined
    if (nested !== undefined) return readParts(content, nested, false)
    const answer = readAnswer(fields.one('content-id'), content)
    return answer === undefined ? [] : [answer]
  })
}

function boundaryOf(contentType: string): string | undefined {
  if (!/^multipart\/mixed\s*;/i.test(contentType)) return undefined
  const found = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i.exec(contentType)
  return found?.[1] ?? found?.[2]
}

/** Returns the texts between delimiter lines. The line end before a delimiter belongs to the delimiter (RFC 2046 5.1.1). */
function splitParts(text: string, boundary: string): string[] {
  const delimiter = `--${boundary}`
  const parts: string[] = []
  let start = -1
  for (let at = text.indexOf(delimiter); at >= 0; at = text.indexOf(delimiter, at + delimiter.length)) {
    if (at > 0 && text[at - 1] !== '\n') continue
    const lineEnd = text.indexOf('\n', at)
    const rest = text.slice(at + delimiter.length, lineEnd < 0 ? text.length : lineEnd)
    if (!/^(?:--)?[ \t]*\r?$/.test(rest)) continue
    if (start >= 0) parts.push(text.slice(start, Math.max(start, at)).replace(/\r?\n$/, ''))
    if (rest.startsWith('--')) break
    start = lineEnd < 0 ? text.length : lineEnd + 1
  }
  return parts
}

function readHead(text: string): { fields: ReplyFields; content: string } {
  const fields: string[] = []
  let at = 0
  while (at < text.length) {
    const next = text.indexOf('\n', at)
    const end = next < 0 ? text.length : next
    const line = text.slice(at, end).trim()
    at = end + 1
    if (line === '') break
    const colon = line.indexOf(':')
    if (colon > 0) fields.push(line.slice(0, colon).trim(), line.slice(colon + 1))
  }
  return { fields: new ReplyFields(fields), content: text.slice(at) }
}

function readAnswer(mimeId: string | undefined, content: string): AnswerPart | undefined {
  const [line = '', status] = /^\s*HTTP\/1\.[01] (\d{3})[^\n]*\n?/.exec(content) ?? []
  if (status === undefined) return undefined
  const { fields, content: body } = readHead(content.slice(line.length))
  return {
    id: mimeId ?? fields.one('content-id'),
    status: Number(status),
    retryAfter: fields.one('retry-after'),
    body: Buffer.from(body, 'latin1').toString('utf8'),
  }
}
