import { randomUUID } from 'node:crypto'

import type { PostOutcome, Unanswered } from '../outcome.ts'
import type { BatchResult } from './batch-reply.ts'
import { runBounded } from './run-bounded.ts'

/** The two batch formats of OData 4.01: multipart (Protocol 11.7.7) and JSON (JSON Format 19). */
export type BatchFormat = 'multipart' | 'json'

/** How a partner's records are put into V3 batches. */
export interface BatchChoice {
  /** `auto` posts record by record where the upstream has no batch. */
  readonly mode: 'batch' | 'auto'
  readonly format: BatchFormat
  readonly maxRecords: number
  /** The longest time that V3 takes for one record, ms: the head of the reply may come so much later for each. */
  readonly recordMs: number
  /** Records under way at the same time when they go one by one. */
  readonly concurrency: number
}

/** Posts one record's JSON and resolves with its outcome. Never rejects. */
export type Post = (record: string) => Promise<PostOutcome>

/** Posts several records in one `$batch`. Never rejects. */
export type PostBatch = (records: readonly string[]) => Promise<BatchResult | Unanswered>

interface Waiting {
  readonly record: string
  readonly resolve: (outcome: PostOutcome) => void
}

const batchRefused: PostOutcome = { kind: 'notApplied', reason: 'batchRefused', retryAfterMs: undefined }
const unreadable: PostOutcome = { kind: 'unknown', reason: 'unreadableReply' }

/**
 * Creates a post that joins the records of one turn into batches of `maxRecords`, or of as many as the upstream takes. It keeps no order within a batch, and needs
 * none: the caller posts a record only after the one before it with the same key was answered, so that a batch never holds
 * two of them. A record alone goes as a plain POST, which costs one call too.
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
    // Another batch may have shown meanwhile that this one is too long.
    const size = capability.longest(choice.maxRecords)
    if (size === 1) return postSingly(chunk)
    if (chunk.length > size) return postInParts(chunk, size)
    const result = await postBatch(chunk.map(({ record }) => record))
    switch (result.kind) {
      case 'answered':
        if (result.sound === true) capability.worked(chunk.length)
        else if (result.sound === false) capability.failed()
        tell(chunk, (index) => result.outcomes[index] ?? unreadable)
        return
      case 'tooLong': {
        const { throttled } = result
        capability.tooLong(chunk.length)
        if (throttled === undefined) return postInParts(chunk, Math.ceil(chunk.length / 2))
        // The records are posted again after a pause, in smaller batches.
        tell(chunk, () => throttled)
        return
      }
      case 'unsupported':
        capability.failed()
        if (choice.mode === 'auto') return postSingly(chunk)
        tell(chunk, () => batchRefused)
        return
      default:
        tell(chunk, () => result)
    }
  }
  const flush = (): void => {
    const chunk = waiting
    waiting = []
    // Whatever failed, the batch may have left.
    if (chunk.length > 0) postChunk(chunk).catch(() => tell(chunk, () => unreadable))
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

/** Gives each record its outcome. Those that are unknown share what was sent: the service may be executing them still. */
function tell(chunk: readonly Waiting[], outcomeOf: (index: number) => PostOutcome): void {
  const outcomes = chunk.map((_, index) => outcomeOf(index))
  const together = { records: outcomes.filter(({ kind }) => kind === 'unknown').length }
  chunk.forEach(({ resolve }, index) => {
    const outcome = outcomes[index]
    if (outcome !== undefined) resolve(outcome.kind === 'unknown' ? { ...outcome, together } : outcome)
  })
}

/** Whether an upstream has `$batch`, and how long one may be, as far as it has shown. */
interface BatchCapability {
  /** True if a batch may be sent now: batches work, were never tried, or failed long enough ago for another try. */
  mayTry(): boolean
  /** True when the next batch may be sent; takes nothing. */
  isOpen(): boolean
  /** The most records that a batch of up to `maxRecords` may have: as many as passed since a longer one was too long. */
  longest(maxRecords: number): number
  /** A batch of so many records was taken. */
  worked(records: number): void
  failed(): void
  /** A batch of so many records was too long, which shows that the upstream has batches. */
  tooLong(records: number): void
}

/** After a failure the upstream is asked again so much later, and so is one to which a batch was too long. */
const RETRY_MS = 600_000

/** Creates the memory of one upstream and format. */
export function createBatchCapability(nowMs: () => number): BatchCapability {
  let closedUntilMs = -Infinity
  let shortUntilMs = -Infinity
  /** Since a batch was too long: the most records that passed, and the most that are tried. */
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
      // One large record makes one batch too long, not those of as many records that passed since the first that did not.
      if (shortUntilMs <= nowMs()) [passed, shortUntilMs] = [1, nowMs() + RETRY_MS]
      tried = Math.floor(records / 2)
    },
  }
}

/** The body of a `$batch` and the media types around it. */
interface EncodedBatch {
  readonly contentType: string
  readonly accept: string
  readonly body: string
}

/**
 * Writes the JSON of records as one `$batch`. Every record is a request of its own, outside any changeset, so that none fails
 * with another; its id is its position, from 1. The URLs are relative to the batch's own: a gateway may have put another path
 * before it.
 */
export function encodeV3Batch(records: readonly string[], format: BatchFormat): EncodedBatch {
  return format === 'json' ? encodeJson(records) : encodeMultipart(records)
}

const json = 'application/json'

function encodeJson(records: readonly string[]): EncodedBatch {
  const headers = `{"content-type":"${json}","accept":"${json}","prefer":"return=representation"}`
  // The records are JSON already, on one line each.
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
