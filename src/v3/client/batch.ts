import { randomUUID } from 'node:crypto'

import type { PostOutcome, Unanswered } from '../outcome.ts'
import type { BatchResult } from './batch-reply.ts'
import { runBounded } from './run-bounded.ts'

/** The two batch formats of OData 4.01: multipart (Protocol 11.7.7) and JSON (JSON Format 19). */
export type BatchFormat = 'multipart' | 'json'

export interface BatchChoice {
  /** `auto` posts records singly if the upstream does not support batches. */
  readonly mode: 'batch' | 'auto'
  readonly format: BatchFormat
  readonly maxRecords: number
  /** The longest time in ms that V3 takes for one record. Each record of a batch extends the timeout for the reply by this time. */
  readonly recordMs: number
  /** Maximum number of records in flight if records are posted singly. */
  readonly concurrency: number
}

/** Posts the JSON of one record and resolves with its outcome. Never rejects. */
export type Post = (record: string) => Promise<PostOutcome>

export type PostBatch = (records: readonly string[]) => Promise<BatchResult | Unanswered>

interface Waiting {
  readonly record: string
  readonly resolve: (outcome: PostOutcome) => void
}

const batchRefused: PostOutcome = { kind: 'notApplied', reason: 'batchRefused', retryAfterMs: undefined }
const unreadable: PostOutcome = { kind: 'unknown', reason: 'unreadableReply' }

/**
 * Joins the posts of one turn of the event loop into batches of up to `maxRecords`, or fewer if the upstream accepts only fewer. The order
 * within a batch does not matter, because the caller posts a record only after the previous record with the same key was answered. A record
 * that is alone is sent as a plain POST, because a batch would save no call.
 */
export function createBatchPost(
  choice: BatchChoice,
  capability: BatchCapability,
  postBatch: PostBatch,
  postOne: Post,
): Post {
  let waiting: Waiting[] = []
  let scheduled = false
  const postSingly = (chunk: readonly Waiting[]): Promise<void> =>
    runBounded({
      count: chunk.length,
      concurrency: choice.concurrency,
      start: async (index) => {
        const own = chunk[index]
        if (own !== undefined) own.resolve(await postOne(own.record))
      },
    })
  const postInParts = async (chunk: readonly Waiting[], size: number): Promise<void> => {
    for (let from = 0; from < chunk.length; from += size) await postChunk(chunk.slice(from, from + size))
  }
  const postChunk = async (chunk: readonly Waiting[]): Promise<void> => {
    if (chunk.length === 1 || (choice.mode === 'auto' && !capability.mayTry())) return postSingly(chunk)
    // Asks for the maximum length again, because the upstream may have refused another long batch since these records were queued.
    const size = capability.longest(choice.maxRecords)
    if (size === 1) return postSingly(chunk)
    if (chunk.length > size) return postInParts(chunk, size)
    const result = await postBatch(chunk.map(({ record }) => record))
    switch (result.kind) {
      case 'answered':
        if (result.sound === true) capability.worked(chunk.length)
        else if (result.sound === false) capability.failed()
        resolveAll(chunk, (index) => result.outcomes[index] ?? unreadable)
        return
      case 'tooLong': {
        const { throttled } = result
        capability.tooLong(chunk.length)
        if (throttled === undefined) return postInParts(chunk, Math.ceil(chunk.length / 2))
        // After a 429, the caller retries the records after a pause. The retry then uses smaller batches.
        resolveAll(chunk, () => throttled)
        return
      }
      case 'unsupported':
        capability.failed()
        if (choice.mode === 'auto') return postSingly(chunk)
        resolveAll(chunk, () => batchRefused)
        return
      default:
        resolveAll(chunk, () => result)
    }
  }
  const flush = (): void => {
    const chunk = waiting
    waiting = []
    // After an unexpected error the outcome of the records is unknown, because the batch may have been sent.
    if (chunk.length > 0) postChunk(chunk).catch(() => resolveAll(chunk, () => unreadable))
  }
  return (record) =>
    new Promise((resolve) => {
      waiting.push({ record, resolve })
      if (waiting.length >= capability.longest(choice.maxRecords)) flush()
      if (scheduled) return
      scheduled = true
      setImmediate(() => {
        scheduled = false
        flush()
      })
    })
}

/** Resolves each record. Unknown outcomes share one `together` object, by which the caller tracks what V3 may still be executing. */
function resolveAll(chunk: readonly Waiting[], outcomeOf: (index: number) => PostOutcome): void {
  const outcomes = chunk.map((_, index) => outcomeOf(index))
  const together = { records: outcomes.filter(({ kind }) => kind === 'unknown').length }
  chunk.forEach(({ resolve }, index) => {
    const outcome = outcomes[index]
    if (outcome !== undefined) resolve(outcome.kind === 'unknown' ? { ...outcome, together } : outcome)
  })
}

/** The capability of one upstream: whether it supports `$batch`, and how long a batch may be. */
interface BatchCapability {
  /** Returns true if a batch may be tried. Ten minutes after a failure, it returns true once: that batch probes the upstream. */
  mayTry(): boolean
  /** Returns true if a batch may be tried, without starting a probe. */
  isOpen(): boolean
  /**
   * Returns the maximum number of records of a batch, up to `maxRecords`. The number is lower for ten minutes after a batch was too long.
   */
  longest(maxRecords: number): number
  worked(records: number): void
  failed(): void
  /** Called after a batch of this many records was too long. Such a refusal also shows that the upstream supports batches. */
  tooLong(records: number): void
}

/** The time in milliseconds after which an upstream that refused a batch is tried again, with batches of full length. */
const RETRY_MS = 600_000

export function createBatchCapability(nowMs: () => number): BatchCapability {
  let closedUntilMs = -Infinity
  let shortUntilMs = -Infinity
  /** The longest accepted batch since a batch was too long (`passed`), and half the length of the last refused batch (`tried`). */
  let [passed, tried] = [1, 1]
  return {
    mayTry: () => {
      const open = closedUntilMs <= nowMs()
      // Lets only one batch probe the upstream. Until its result is known, `mayTry` returns false and records are posted singly.
      if (open && closedUntilMs !== -Infinity) closedUntilMs = nowMs() + RETRY_MS
      return open
    },
    isOpen: () => closedUntilMs <= nowMs(),
    longest: (maxRecords) =>
      shortUntilMs <= nowMs() ? maxRecords : Math.min(maxRecords, Math.max(passed, tried)),
    worked: (records) => {
      closedUntilMs = -Infinity
      passed = Math.max(passed, records)
    },
    failed: () => {
      closedUntilMs = nowMs() + RETRY_MS
    },
    tooLong: (records) => {
      closedUntilMs = -Infinity
      // Lengths that were accepted since the first refusal stay allowed, because a single large record can make a short batch too long.
      if (shortUntilMs <= nowMs()) [passed, shortUntilMs] = [1, nowMs() + RETRY_MS]
      tried = Math.floor(records / 2)
    },
  }
}

interface EncodedBatch {
  readonly contentType: string
  readonly accept: string
  readonly body: string
}

/**
 * Encodes records as one `$batch`. Every record is a separate request outside any changeset, so that the failure of one record does not
 * affect the other records. The id of a request is its position, counted from 1. URLs are relative to the URL of the batch, because a
 * gateway may have put another path before it.
 */
export function encodeV3Batch(records: readonly string[], format: BatchFormat): EncodedBatch {
  return format === 'json' ? encodeJson(records) : encodeMultipart(records)
}

const json = 'application/json'

function encodeJson(records: readonly string[]): EncodedBatch {
  const headers = `{"content-type":"${json}","accept":"${json}","prefer":"return=representation"}`
  // Inserts each record as it is, because it is already JSON.
  const requests = records.map(
    (record, index) =>
      `{"id":"${index + 1}","method":"POST","url":"AttendanceRecords","headers":${headers},"body":${record}}`,
  )
  return { contentType: json, accept: json, body: `{"requests":[${requests.join(',')}]}` }
}

function encodeMultipart(records: readonly string[]): EncodedBatch {
  const boundary = `batch_${randomUUID()}`
  const parts = records.map(
    (record, index) =>
      `--${boundary}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: ${index + 1}\r\n\r\n` +
      `POST AttendanceRecords HTTP/1.1\r\nContent-Type: ${json}\r\nAccept: ${json}\r\nPrefer: return=representation\r\n\r\n` +
      `${record}\r\n`,
  )
  return {
    contentType: `multipart/mixed; boundary=${boundary}`,
    accept: 'multipart/mixed',
    body: `${parts.join('')}--${boundary}--\r\n`,
  }
}
