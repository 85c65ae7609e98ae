import type { Clock } from '../../clock.ts'
import {
  createConnections,
  type DeadlineOptions,
  type Dispatch,
  type OnCall,
  openDeadline,
  type ReplyReader,
  soleQueue,
  type Unanswered,
  type UpstreamTimeouts,
} from '../../upstream/index.ts'
import { parsePostReply, type PostOutcome } from '../errors.ts'
import {
  type BatchChoice,
  type BatchFormat,
  createBatchCapability,
  createBatchPost,
  encodeV3Batch,
  type Post,
  type PostBatch,
} from './batch.ts'
import { type BatchResult, readBatchReply } from './batch-reply.ts'

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
  /**
   * Posts one record's JSON, and again as long as it was not applied, that may help and time is left. An outcome that is unknown is
   * not repeated: a POST is not idempotent. Never rejects.
   */
  post(body: string): Promise<PostOutcome>
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
  const { baseUrl, nowMs, clock, onCall, later } = options
  const connections = createConnections(baseUrl.origin, options)
  const observe = (kind: 'write' | 'batch'): ReplyReader<unknown>['onAnswered'] =>
    onCall && ((status, durationMs) => onCall({ kind, status, durationMs }))
  const root = `${baseUrl.pathname.replace(/\/+$/, '')}/Attendance/V3`
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
  return {
    openWrites: (
      { authorization, subscriptionKey },
      { budgetMs, rateLimit, batch, maySend, queueKey = soleQueue },
    ) => {
      const deadline = openDeadline({ budgetMs, clock, rateLimit, maySend, queueKey })
      const post = <Outcome>(
        path: string,
        fields: readonly string[],
        body: string,
        reader: ReplyReader<Outcome>,
      ): Promise<Outcome | Unanswered> => {
        const headers = [
          ...fields,
          'authorization', authorization,
          'ocp-apim-subscription-key', subscriptionKey,
        ] // prettier-ignore
        const dispatch: Dispatch = (handler, text) =>
          connections.dispatch({ path, method: 'POST', headers, body: text }, handler, { queueKey })
        return new Promise((resolve) => deadline.send(dispatch, body, reader, resolve))
      }
      const postOne: Post = (body) => post(`${root}/AttendanceRecords`, RECORD_FIELDS, body, single)
      const postBatch =
        (format: BatchFormat): PostBatch =>
        (records) => {
          const { contentType, accept, body } = encodeV3Batch(records, format)
          return post<BatchResult>(
            `${root}/$batch`,
            ['content-type', contentType, 'accept', accept, ...BATCH_FIELDS],
            body,
            {
              onAnswered: observe('batch'),
              later,
              maxReplyBytes: MAX_REPLY_BYTES + records.length * MAX_PART_BYTES,
              read: (reply) => readBatchReply(reply, records.length, nowMs()),
            },
          )
        }
      const joined = isBatch(batch) ? batch : undefined
      const postJoined =
        joined === undefined
          ? postOne
          : createBatchPost(joined, capabilities[joined.format], postBatch(joined.format), postOne)
      return {
        atATime: joined === undefined ? undefined : joined.maxRecords * BATCHES_AT_A_TIME,
        post: async (body) => {
          const first = await postJoined(body)
          if (first.kind !== 'notApplied') return first
          return deadline.repeat<PostOutcome>(first, (onOutcome) => void postJoined(body).then(onOutcome))
        },
        withdraw: () => deadline.withdraw(),
        leftMs: () => deadline.leftMs(),
        queuedMs: () => deadline.queuedMs(),
        close: () => deadline.close(),
      }
    },
    close: () => connections.close(),
  }
}

const RECORD_FIELDS = [
  'content-type', 'application/json',
  'accept', 'application/json',
  'prefer', 'return=representation',
] // prettier-ignore

const BATCH_FIELDS = [
  // The name of 4.01 and that of 4.0: without it the service stops at the first record that it refuses.
  'prefer', 'continue-on-error, odata.continue-on-error',
  'odata-maxversion', '4.01',
] // prettier-ignore
