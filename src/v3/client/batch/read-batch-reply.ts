import * as z from 'zod'

import { parseJson } from '../../errors/upstream-error.ts'
import type { PostOutcome } from '../../errors/post-outcome.ts'
import type { UpstreamReply } from '../../../upstream/index.ts'
import { parsePostReply } from '../parse-post-reply.ts'
import { type AnswerPart, readMultipartAnswers } from './read-multipart.ts'

/** The meaning of a reply to a `$batch`. */
export type BatchResult =
  /** One outcome for each record, in order. `sound`: every record had exactly one answer of its own. */
  | { readonly kind: 'answered'; readonly outcomes: readonly PostOutcome[]; readonly sound: boolean }
  /** The upstream has no `$batch`, or not this form of it: nothing was applied. */
  | { readonly kind: 'unsupported' }

const jsonReply = z.object({
  responses: z.array(
    z.object({
      id: z.string(),
      status: z.int(),
      headers: z.record(z.string(), z.string()).catch({}),
      body: z.unknown().optional(),
    }),
  ),
})

/** The answers to a few hundred records have no more brackets and commas. */
const MAX_BATCH_NODES = 32_768

const unreadable: PostOutcome = { kind: 'unknown', reason: 'unreadableReply' }

/**
 * Reads the reply to a batch of `count` records with the ids 1 to `count`. A refusal of the batch as a whole (4xx, 501) means
 * that the upstream has none; 401 and 403 are the credentials', and everything else is every record's. Never throws.
 */
export function readBatchReply(reply: UpstreamReply, count: number, nowMs: number): BatchResult {
  const { status, body, contentType, retryAfter } = reply
  if (status >= 200 && status < 300) {
    // 202 promises an answer later, at another address: the outcome of the records is unknown.
    const parts = status === 202 ? undefined : readAnswers(body, contentType)
    return matchAnswers(parts ?? [], count, nowMs)
  }
  if (status === 501) return { kind: 'unsupported' }
  const outcome = parsePostReply(status, body.toString('utf8'), retryAfter, nowMs)
  if (outcome.kind === 'refused' && status !== 401 && status !== 403) return { kind: 'unsupported' }
  const outcomes = Array<PostOutcome>(count).fill(outcome)
  return { kind: 'answered', outcomes, sound: outcome.kind !== 'unknown' }
}

function readAnswers(body: Buffer, contentType: string | undefined): AnswerPart[] | undefined {
  if (!/^application\/json\b/i.test(contentType ?? '')) return readMultipartAnswers(body, contentType)
  const reply = jsonReply.safeParse(parseJson(body.toString('utf8'), MAX_BATCH_NODES))
  return reply.data?.responses.map(({ id, status, headers, body: own }) => ({
    id,
    status,
    retryAfter: Object.entries(headers).find(([name]) => name.toLowerCase() === 'retry-after')?.[1],
    body: own === undefined ? '' : typeof own === 'string' ? own : JSON.stringify(own),
  }))
}

/**
 * Gives each record its answer: by id as soon as one part has an id, else by position, and by position only when there are as
 * many parts as records. A missing answer, and one of two with the same id, is an unknown outcome: nothing is guessed.
 */
function matchAnswers(parts: readonly AnswerPart[], count: number, nowMs: number): BatchResult {
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
    return unreadable
  })
  return { kind: 'answered', outcomes, sound }
}
