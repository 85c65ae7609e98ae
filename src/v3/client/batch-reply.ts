import * as z from 'zod'

import { MAX_NODES_AT_ONCE, parseJson, ReplyFields } from '../../upstream/index.ts'
import { parsePostReply, type PostOutcome, type Unanswered } from '../outcome.ts'

/** An upstream's reply, as far as an outcome is read from it. */
export interface UpstreamReply {
  readonly status: number
  /** Empty if only the status line was received. */
  readonly body: Buffer
  readonly contentType: string | undefined
  readonly retryAfter: string | undefined
  /** The outcome of what was not answered, where the reply broke off; undefined: it is whole. */
  readonly cut?: Unanswered | undefined
}

/** The meaning of a reply to a `$batch`. */
export type BatchResult =
  /**
   * One outcome for each record, in order. `sound`: every record had exactly one answer of its own; undefined: the reply broke off, which says
   * nothing about that.
   */
  | {
      readonly kind: 'answered'
      readonly outcomes: readonly PostOutcome[]
      readonly sound: boolean | undefined
    }
  /** The upstream takes no batch of so many records, or bytes: nothing was applied. `throttled`: it answered as to too many calls. */
  | { readonly kind: 'tooLong'; readonly throttled: PostOutcome | undefined }
  /** The upstream has no `$batch`, or not this form of it: nothing was applied. */
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
 * Reads the reply to a batch of `count` records with the ids 1 to `count`. A refusal of the batch as a whole (4xx, 501) means
 * that the upstream has none; 401 and 403 are the credentials', and everything else is every record's. A 413 means that the batch is
 * too long, and so does a 429 that names no time: the limit of calls names one (service-facts 9). Never throws.
 */
export function readBatchReply(reply: UpstreamReply, count: number, nowMs: number): BatchResult {
  const { status, body, contentType, retryAfter } = reply
  if (status >= 200 && status < 300) {
    // 202 promises an answer later, at another address: the outcome of the records is unknown.
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

/** The fields of an answer in JSON; a value that is no text, and no list of texts, is none. */
const toFields = (headers: Readonly<Record<string, unknown>>): ReplyFields =>
  new ReplyFields(
    Object.entries(headers).flatMap(([name, values]) =>
      [values].flat().flatMap((value) => (typeof value === 'string' ? [name, value] : [])),
    ),
  )

/**
 * Gives each record its answer: by id as soon as one part has an id, else by position, and by position only when there are as
 * many parts as records. A missing answer, and one of two with the same id, is an unknown outcome: nothing is guessed. `missing`: the
 * outcome of a record without an answer in a reply that broke off.
 */
function matchAnswers(
  parts: readonly AnswerPart[],
  count: number,
  nowMs: number,
  missing: Unanswered | undefined,
): BatchResult {
  const own = new Map<string, AnswerPart | undefined>()
  if (parts.some(({ id }) => id !== undefined)) {
    for (const part of parts) if (part.id !== undefined) own.set(part.id, own.has(part.id) ? undefined : part)
  } else if (parts.length === count) {
    parts.forEach((part, index) => own.set(String(index + 1), part))
  }
  let sound = parts.length === count
  const outcomes = Array.from({ length: count }, (_, index) => {
    const part = own.get(String(index + 1))
    if (part !== undefined) return parsePostReply(part.status, part.body, part.retryAfter, nowMs)
    sound = false
    return missing ?? unreadable
  })
  return { kind: 'answered', outcomes, sound: missing === undefined ? sound : undefined }
}

/** The answer to one request of a batch. */
interface AnswerPart {
  /** Content-ID or JSON id; undefined where the part has none. */
  readonly id: string | undefined
  readonly status: number
  readonly retryAfter: string | undefined
  readonly body: string
}

/**
 * Reads a multipart batch reply: the parts in their order, those of changesets among them. Only what is closed by a delimiter is
 * a part, so that nothing is read from one that broke off. Undefined: no multipart reply.
 */
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

/** The texts between delimiter lines (RFC 2046 5.1.1); the line end before a delimiter belongs to it. */
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

/** The fields up to the first blank line, and the rest. */
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
