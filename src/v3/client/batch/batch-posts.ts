import type { PostOutcome } from '../../errors/post-outcome.ts'
import type { Unanswered } from '../../../upstream/index.ts'
import { runOrdered } from '../run-ordered.ts'
import type { BatchCapability } from './capability.ts'
import type { BatchFormat } from './encode-batch.ts'
import type { BatchResult } from './read-batch-reply.ts'

/** How a partner's records are put into V3 batches. */
export interface BatchChoice {
  /** `auto` posts record by record where the upstream has no batch. */
  readonly mode: 'batch' | 'auto'
  readonly format: BatchFormat
  readonly maxRecords: number
  /** Records under way at the same time when they go one by one. */
  readonly concurrency: number
}

export interface BatchPostParts {
  readonly choice: BatchChoice
  readonly capability: BatchCapability
  readonly sendBatch: (
    records: readonly string[],
    onResult: (result: BatchResult | Unanswered) => void,
  ) => void
  readonly sendOne: Post
}

/** Called with the outcome of a POST. */
export type OnPost = (outcome: PostOutcome) => void

/** Posts one record's JSON and reports its outcome, once. */
export type Post = (record: string, onOutcome: OnPost) => void

interface Waiting {
  readonly record: string
  readonly resolve: OnPost
}

const batchRefused: PostOutcome = { kind: 'notApplied', reason: 'batchRefused', retryAfterMs: undefined }

/**
 * Creates a post that joins the records of one turn into batches of `maxRecords`. It keeps no order within a batch, and needs
 * none: the caller posts a record only after the one before it with the same key was answered, so that a batch never holds
 * two of them. A record alone goes as a plain POST, which costs one call too.
 */
export function createBatchPosts(parts: BatchPostParts): Post {
  const { choice } = parts
  let waiting: Waiting[] = []
  let scheduled = false
  const flush = (): void => {
    const chunk = waiting
    waiting = []
    if (chunk.length > 0) sendChunk(parts, chunk)
  }
  return (record, resolve) => {
    waiting.push({ record, resolve })
    if (waiting.length >= choice.maxRecords) flush()
    if (scheduled) return
    scheduled = true
    setImmediate(() => {
      scheduled = false
      flush()
    })
  }
}

function sendChunk(parts: BatchPostParts, chunk: readonly Waiting[]): void {
  const { choice, capability, sendBatch } = parts
  if (chunk.length === 1 || (choice.mode === 'auto' && !capability.mayTry())) {
    sendSingly(parts, chunk)
    return
  }
  sendBatch(
    chunk.map(({ record }) => record),
    (result) => {
      answerChunk(parts, chunk, result)
    },
  )
}

function answerChunk(
  parts: BatchPostParts,
  chunk: readonly Waiting[],
  result: BatchResult | Unanswered,
): void {
  const { choice, capability } = parts
  switch (result.kind) {
    case 'answered':
      if (result.sound) capability.worked()
      else capability.failed()
      chunk.forEach(({ resolve }, index) => {
        resolve(result.outcomes[index] ?? { kind: 'unknown', reason: 'unreadableReply' })
      })
      return
    case 'unsupported':
      capability.failed()
      if (choice.mode === 'auto') sendSingly(parts, chunk)
      else for (const { resolve } of chunk) resolve(batchRefused)
      return
    default:
      for (const { resolve } of chunk) resolve(result)
  }
}

function sendSingly({ choice, sendOne }: BatchPostParts, chunk: readonly Waiting[]): void {
  void runOrdered({
    count: chunk.length,
    concurrency: choice.concurrency,
    keyOf: String, // the records of one chunk have different keys
    start: (index, done) => {
      const own = chunk[index]
      if (own === undefined) return
      sendOne(own.record, (outcome) => {
        own.resolve(outcome)
        done(index)
      })
    },
    stopped: () => false,
  })
}
