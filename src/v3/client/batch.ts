import { randomUUID } from 'node:crypto'

import type { PostOutcome, Unanswered } from '../outcome.ts'
import type { BatchResult } from './batch-reply.ts'
import { runBounded } from './run-bounded.ts'

/** The two batch formats of OData 4.01: multipart (Protocol 11.7.7) and JSON (JSON Format 19). */
export type BatchFormat = 'multipart' | 'json'

export interface BatchChoice {
  /** `auto` posts single records if the upstream has no batches. */
  readonly mode: 'batch' | 'auto'
  readonly format: BatchFormat
  readonly maxRecords: number
  /** The longest time that V3 takes for one record, in ms. Each record of a batch extends the wait for the reply by this time. */
  readonly recordMs: number
  /** Maximum number of records in flight when they are posted singly. */
  readonly concurrency: number
}

/** Posts one record's JSON and resolves with its outcome. Never rejects. */
export type Post = (record: string) => Promise<PostOutcome>

export type PostBatch = (records: readonly string[]) => Promise<BatchResult | Unanswered>

interface Waiting {
  readonly record: string
  readonly resolve: (outcome: PostOutcome) => void
}

const batchRefused: PostOutcome = { kind: 'notApplied', reason: 'batchRefused', retryAfterMs: undefined }
const unreadable: PostOutcome = { kind: 'unknown', reason: 'unreadableReply' }

/**
 * Joins the posts of one turn of the event loop into batches of up to `maxRecords`, or of as many records as the upstream accepts. Keeps no
 * order within a batch: the caller posts a record only after the previous one with the same key was answered. A single record goes as a
 * plain POST, which also costs one call.
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
    // Another batch may have shown in the meantime that this one is too long.
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
        // The caller posts the records again after a pause, in smaller batches.
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
    // Whatever failed, the batch may have left.
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

/** Resolves each record. Unknown outcomes share one object, because V3 may still be executing the batch that held the records. */
function resolveAll(chunk: readonly Waiting[], outcomeOf: (index: number) => PostOutcome): void {
  const outcomes = chunk.map((_, index) => outcomeOf(index))
  const together = { records: outcomes.filter(({ kind }) => kind === 'unknown').length }
  chunk.forEach(({ resolve }, index) => {
    const outcome = outcomes[index]
    if (outcome !== undefined) resolve(outcome.kind === 'unknown' ? { ...outcome, together } : outcome)
  })
}

/** What an upstream has shown about its support for `$batch`. */
interface BatchCapability {
  /** Returns true if batches work, were never tried, or failed long ago. In the last case the caller's next batch is the probe. */
  mayTry(): boolean
  /** Returns true if the next batch may be sent, without starting a probe. */
  isOpen(): boolean
  /** Returns the most records that a batch may have, up to `maxRecords`. After a batch was too long, the limit is lower for a while. */
  longest(maxRecords: number): number
  /** Called after the upstream accepted a batch of this many records. */
  worked(records: number): void
  failed(): void
  /** Called after a batch of this many records was too long, which also shows that the upstream has batches. */
  tooLong(records: number): void
}

/** The time after which an upstream is tried again if it refused a batch, or refused a batch as too long. */
const RETRY_MS = 600_000

export function createBatchCapability(nowMs: () => number): BatchCapability {
  let closedUntilMs = -Infinity
  let shortUntilMs = -Infinity
  /** Since a batch was too long: the most records that passed in one batch, and the most to try in the next one. */
  let [passed, tried] = [1, 1]
  return {
    mayTry: () => {
      const open = closedUntilMs <= nowMs()
      // One batch probes again; the others wait for its result.
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
      // One large record can make a batch too long, so batches of a size that has passed since the first refusal stay allowed.
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
 * Encodes records as one `$batch`. Every record is a request of its own outside any changeset, so that none fails with another. The id of a
 * request is its position from 1. URLs are relative to that of the batch, because a gateway may have put another path before it.
 */
export function encodeV3Batch(records: readonly string[], format: BatchFormat): EncodedBatch {
  return format === 'json' ? encodeJson(records) : encodeMultipart(records)
}

const json = 'application/json'

function encodeJson(records: readonly string[]): EncodedBatch {
  const headers = `{"content-type":"${json}","accept":"${json}","prefer":"return=representation"}`
  // Each record is already JSON on one line.
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
