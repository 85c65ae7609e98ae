import type { Clock } from '../../clock.ts'
import {
  createConnections,
  type Deadline,
  type DeadlineOptions,
  type Dispatch,
  type NotApplied,
  type OnCall,
  openDeadline,
  type QueueKey,
  type ReplyReader,
  soleQueue,
  type UpstreamTimeouts,
} from '../../upstream/index.ts'
import type { PostOutcome } from '../errors/post-outcome.ts'
import { type BatchChoice, createBatchPosts, type OnPost, type Post } from './batch/batch-posts.ts'
import { createBatchCapability } from './batch/capability.ts'
import { encodeV3Batch } from './batch/encode-batch.ts'
import { type BatchResult, readBatchReply } from './batch/read-batch-reply.ts'
import { parsePostReply } from './parse-post-reply.ts'

/** Where V3 is and how patient the client is. */
export interface V3ClientOptions {
  /** Base address; `/Attendance/V3/AttendanceRecords` is added to its path. */
  readonly baseUrl: URL
  /** Open connections at the most, one request each at a time. Default 32. */
  readonly connections: number
  readonly timeouts: UpstreamTimeouts
  /** Milliseconds since the epoch: the reference of a date in `Retry-After`. */
  readonly nowMs: () => number
  readonly clock: Clock
  /** Called for every call that left; none by default. */
  readonly onCall?: OnCall
  /** Runs work in a turn of the event loop of its own; by default it is done at once. */
  readonly later?: (act: () => void) => void
}

/** The credentials of the outer request, mapped for the upstream; inner ones are never forwarded (batch-wire F24). */
export interface V3Credentials {
  readonly authorization: string
  readonly subscriptionKey: string
}

/** The writes of one batch: they share credentials, a deadline and a rate limit. */
export interface V3Writes {
  /** Posts one record's JSON once and reports its outcome, once. */
  post(body: string, onOutcome: OnPost): void
  /** Posts a record again whose first post was not applied, as long as that may help and time is left. Never rejects. */
  repost(body: string, first: NotApplied): Promise<PostOutcome>
  /** How many posts fill the batches under way; undefined: posts go one by one, as many as the partner wants. */
  readonly atATime: number | undefined
  /** Sends nothing any more: what has not left is `notApplied`. */
  withdraw(): void
  /** The time that is left of the budget, ms. */
  leftMs(): number
  /** The longest time that a call waited for the rate limit so far, ms. */
  queuedMs(): number
  /** Cancels the timer of the deadline. */
  close(): void
}

/** The calls of one batch; `maySend` on false is `leaseLost`. Without a rate limit nothing is queued. */
export interface WriteOptions extends Pick<DeadlineOptions, 'budgetMs' | 'maySend' | 'queueKey'> {
  readonly rateLimit?: DeadlineOptions['rateLimit']
  /** Joins the posts of one turn of the event loop into `$batch` calls. */
  readonly batch?: BatchChoice | undefined
}

export interface V3Client {
  /** Opens the writes of one batch: after its budget, unsent records are `notApplied`, sent ones `unknown`. */
  openWrites(credentials: V3Credentials, options: WriteOptions): V3Writes
  /** Waits for calls in flight, then closes the connections. */
  close(): Promise<void>
}

/** An upstream's answer to one record is small. */
const MAX_REPLY_BYTES = 1_048_576
/** The additions of a part of a batch reply. */
const MAX_PART_BYTES = 8_192
/** Batches under way at the same time: one is answered while the next is made up. */
const BATCHES_AT_A_TIME = 2

/** Creates the client of one V3 upstream over undici. */
export function createV3Client(options: V3ClientOptions): V3Client {
  const { baseUrl, nowMs, clock } = options
  const connections = createConnections(baseUrl.origin, options)
  const { onCall, later } = options
  const observe = (kind: 'write' | 'batch'): ReplyReader<unknown>['onAnswered'] =>
    onCall && ((status, durationMs) => onCall({ kind, status, durationMs }))
  const onBatchAnswered = observe('batch')
  const root = `${baseUrl.pathname.replace(/\/+$/, '')}/Attendance/V3`
  const path = `${root}/AttendanceRecords`
  const capabilities = {
    multipart: createBatchCapability(() => clock.nowMs()),
    json: createBatchCapability(() => clock.nowMs()),
  }
  const isBatch = (batch: BatchChoice | undefined): batch is BatchChoice =>
    batch !== undefined && (batch.mode === 'batch' || capabilities[batch.format].isOpen())
  const single: ReplyReader<PostOutcome> = {
    onAnswered: observe('write'),
    later,
    maxReplyBytes: MAX_REPLY_BYTES,
    read: ({ status, body, retryAfter }) =>
      parsePostReply(status, body.toString('utf8'), retryAfter, nowMs()),
  }
  const joinedPost = (
    choice: BatchChoice,
    { authorization, subscriptionKey }: V3Credentials,
    deadline: Deadline,
    sendOne: Post,
    queueKey: QueueKey,
  ): Post =>
    createBatchPosts({
      choice,
      sendOne,
      capability: capabilities[choice.format],
      sendBatch: (records, onResult) => {
        const { contentType, accept, body } = encodeV3Batch(records, choice.format)
        const headers = [
          'content-type', contentType,
          'accept', accept,
          // The name of 4.01 and that of 4.0: without it the service stops at the first record that it refuses.
          'prefer', 'continue-on-error, odata.continue-on-error',
          'odata-maxversion', '4.01',
          'authorization', authorization,
          'ocp-apim-subscription-key', subscriptionKey,
        ] // prettier-ignore
        const dispatch: Dispatch = (handler, text) =>
          connections.dispatch({ path: `${root}/$batch`, method: 'POST', headers, body: text }, handler, {
            queueKey,
          })
        const reader: ReplyReader<BatchResult> = {
          onAnswered: onBatchAnswered,
          later,
          maxReplyBytes: MAX_REPLY_BYTES + records.length * MAX_PART_BYTES,
          read: (reply) => readBatchReply(reply, records.length, nowMs()),
        }
        deadline.send(dispatch, body, reader, onResult)
      },
    })
  return {
    openWrites: (credentials, { budgetMs, rateLimit, batch, maySend, queueKey = soleQueue }) => {
      const headers = [
        'content-type', 'application/json',
        'accept', 'application/json',
        'prefer', 'return=representation',
        'authorization', credentials.authorization,
        'ocp-apim-subscription-key', credentials.subscriptionKey,
      ] // prettier-ignore
      const dispatch: Dispatch = (handler, body) =>
        connections.dispatch({ path, method: 'POST', headers, body }, handler, wait)
      const wait = { queueKey }
      const deadline = openDeadline({ budgetMs, clock, rateLimit, maySend, queueKey })
      const postOne: Post = (body, onOutcome) => {
        deadline.send<PostOutcome>(dispatch, body, single, onOutcome)
      }
      const joined = isBatch(batch) ? batch : undefined
      const post =
        joined === undefined ? postOne : joinedPost(joined, credentials, deadline, postOne, queueKey)
      return {
        atATime: joined === undefined ? undefined : joined.maxRecords * BATCHES_AT_A_TIME,
        post,
        repost: (body, first) =>
          deadline.repeat<PostOutcome>(first, (onOutcome) => {
            post(body, onOutcome)
          }),
        withdraw: () => deadline.withdraw(),
        leftMs: () => deadline.leftMs(),
        queuedMs: () => deadline.queuedMs(),
        close: () => deadline.close(),
      }
    },
    close: () => connections.close(),
  }
}
