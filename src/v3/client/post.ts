import { errors } from 'undici'

import type { Clock } from '../../clock.ts'
import { AdapterError, type ErrorCode } from '../../errors.ts'
import {
  type CallEnd,
  CallGroup,
  type CallOptions,
  type CallTrace,
  createConnections,
  type OnCall,
  type OpenConnection,
  openCallBudget,
  type QueueKey,
  type RateLimit,
  retryWaitMs,
  sendCall,
  soleQueue,
  type UpstreamRoute,
  type UpstreamTimeouts,
} from '../../upstream/index.ts'
import {
  type NotAppliedReason,
  parsePostReply,
  type PostOutcome,
  type Unanswered,
  type UnknownReason,
} from '../outcome.ts'
import {
  type BatchChoice,
  createBatchCapability,
  createBatchPost,
  encodeV3Batch,
  type Post,
  type PostBatch,
} from './batch.ts'
import { readBatchReply, type UpstreamReply } from './batch-reply.ts'

export interface V3ClientOptions {
  /** The base address. Paths such as `/Attendance/V3/AttendanceRecords` are added to its path. */
  readonly baseUrl: URL
  /** Maximum number of open connections, each with one request at a time. */
  readonly connections: number
  readonly timeouts: UpstreamTimeouts
  readonly route?: UpstreamRoute | undefined
  /** Returns the current time in milliseconds since the epoch, with which a date in `Retry-After` is compared. */
  readonly nowMs: () => number
  readonly clock: Clock
  readonly onCall?: OnCall
  readonly trace?: ((kind: 'write' | 'batch' | 'read') => CallTrace | undefined) | undefined
  /** Runs work in a separate turn of the event loop. By default, work runs at once. */
  readonly later?: (act: () => void) => void
  /** Opens one connection. By default, undici opens it. */
  readonly open?: OpenConnection | undefined
}

/** The credentials for calls to the upstream. Credentials in the parts of a client's batch are never used (batch-wire F24). */
export interface V3Credentials {
  readonly authorization: string
  readonly subscriptionKey: string
}

/** The writes of one batch. These writes share credentials, a deadline and a rate limit. */
export interface V3Writes {
  /**
   * Posts the JSON of a record. While time is left, retries a record that was not applied, with the pauses of `retryWaitMs`. Never rejects.
   */
  post(body: string): Promise<PostOutcome>
  /** The number of concurrent posts that fill the batches, or `undefined` if records are posted singly at the partner's concurrency. */
  readonly atATime: number | undefined
  /** Stops sending. Records that were not sent yet end as `notApplied`. */
  withdraw(): void
  leftMs(): number
  /** Returns the longest time that a call has waited for the rate limit, in milliseconds. */
  queuedMs(): number
}

export interface SendPermission {
  /** Called when a request is written to its socket, so it must be cheap. If it returns false, the request is not written. */
  maySend(): boolean
  /** Called after `maySend` returned false. If it resolves with true, the record is posted, otherwise the record ends as `leaseLost`. */
  renew(): Promise<boolean>
}

interface WriteOptions {
  readonly budgetMs: number
  readonly rateLimit?: RateLimit | undefined
  readonly permission?: SendPermission
  readonly queueKey?: QueueKey
  /** How posts are joined into `$batch` calls, or `undefined` to post records singly. */
  readonly batch?: BatchChoice | undefined
}

export interface V3Client {
  /** Opens the writes of one batch. When `budgetMs` has passed, unsent records end as `notApplied` and sent records as `unknown`. */
  openWrites(credentials: V3Credentials, options: WriteOptions): V3Writes
  close(): Promise<void>
}

const MAX_REPLY_BYTES = 1_048_576
/** The number of bytes by which each record raises the maximum size of a batch reply. */
const MAX_PART_BYTES = 8_192
/** Maximum number of batches in flight. With two, one batch is filled while the other is answered. */
const BATCHES_AT_A_TIME = 2

/** Replies of at least this size are read in a turn of the event loop of their own, because several may arrive in one turn. */
const LARGE_REPLY_BYTES = 32_768

interface PostKind<Outcome> {
  readonly path: string
  readonly headers: string[]
  readonly options: CallOptions
  /** The timeout in ms from the end of the request to the head of its reply. */
  readonly headersMs: number
  readonly read: (reply: UpstreamReply) => Outcome
  /** True if a reply that was cut off is read as far as it arrived. */
  readonly readsParts: boolean
}

export function createV3Client(options: V3ClientOptions): V3Client {
  const { baseUrl, nowMs, clock, onCall, trace, later } = options
  const connections = createConnections(baseUrl.origin, options)
  const root = `${baseUrl.pathname.replace(/\/+$/, '')}/Attendance/V3`
  const capabilities = {
    multipart: createBatchCapability(() => clock.nowMs()),
    json: createBatchCapability(() => clock.nowMs()),
  }
  const isBatch = (batch: BatchChoice | undefined): batch is BatchChoice =>
    batch !== undefined && (batch.mode === 'batch' || capabilities[batch.format].isOpen())
  return {
    openWrites: (
      { authorization, subscriptionKey },
      { budgetMs, rateLimit, batch, permission, queueKey = soleQueue },
    ) => {
      const withdrawn = new AbortController()
      const { signal } = withdrawn
      const budget = openCallBudget({
        rateLimit,
        queueKey,
        priority: 'write',
        budgetMs,
        clock,
        signal: () => signal,
      })
      const group = new CallGroup(clock, () => budget.leftMs())
      let queuedMs = 0
      // True once all attempts to connect failed for one record, so that the other records do not repeat these attempts.
      let isUnreachable = false
      const beforeSend = (): void => {
        if (permission?.maySend() === false)
          throw new AdapterError('ADP_JOURNAL_LOST', 'The lease ended before the record was sent.')
      }
      const credentialFields = ['authorization', authorization, 'ocp-apim-subscription-key', subscriptionKey]
      const optionsOf = (kind: 'write' | 'batch', maxBytes: number): CallOptions => ({
        clock,
        group,
        maxBytes,
        beforeSend,
        onAnswered: onCall && ((status, durationMs) => onCall({ kind, status, durationMs })),
        trace: trace && (() => trace(kind)),
      })
      const wait = { queueKey }
      /** Sends one POST. Never retries, because a POST is not idempotent. */
      const postOnce = async <Outcome>(
        kind: PostKind<Outcome>,
        body: string,
      ): Promise<Outcome | Unanswered> => {
        try {
          queuedMs = Math.max(queuedMs, await budget.take())
        } catch (cause) {
          return notApplied(codeOf(cause) === 'ADP_OVERLOADED' ? 'queueFull' : 'budget')
        }
        if (signal.aborted) return notApplied('budget')
        const { path, headers, options: callOptions, headersMs } = kind
        const request = { path, method: 'POST', headers, body, headersTimeout: headersMs } as const
        const end = await sendCall(connections, request, wait, callOptions)
        if (later !== undefined && end.body.size >= LARGE_REPLY_BYTES) await new Promise<void>(later)
        try {
          return toOutcome(kind, end)
        } catch {
          // Reports an unknown outcome, because the request was sent and its reply does not tell whether the record was applied.
          return { kind: 'unknown', reason: 'unreadableReply' }
        }
      }
      const single: PostKind<PostOutcome> = {
        path: `${root}/AttendanceRecords`,
        headers: [...RECORD_FIELDS, ...credentialFields],
        options: optionsOf('write', MAX_REPLY_BYTES),
        headersMs: options.timeouts.headersMs,
        readsParts: false,
        read: ({ status, body, retryAfter }) =>
          parsePostReply(status, body.toString('utf8'), retryAfter, nowMs()),
      }
      const postOne: Post = (body) => postOnce(single, body)
      const postBatch =
        ({ format, recordMs }: BatchChoice): PostBatch =>
        (records) => {
          const { contentType, accept, body } = encodeV3Batch(records, format)
          return postOnce(
            {
              path: `${root}/$batch`,
              headers: [
                ...['content-type', contentType, 'accept', accept],
                ...BATCH_FIELDS,
                ...['odata-maxversion', BATCH_VERSIONS[format]],
                ...credentialFields,
              ],
              options: optionsOf('batch', MAX_REPLY_BYTES + records.length * MAX_PART_BYTES),
              // Extends the timeout, because a service may apply all records before it sends the first byte of its reply.
              headersMs: options.timeouts.headersMs + records.length * recordMs,
              readsParts: true,
              read: (reply) => readBatchReply(reply, records.length, nowMs()),
            },
            body,
          )
        }
      const joined = isBatch(batch) ? batch : undefined
      const postJoined =
        joined === undefined
          ? postOne
          : createBatchPost(joined, capabilities[joined.format], postBatch(joined), postOne)
      return {
        atATime: joined === undefined ? undefined : joined.maxRecords * BATCHES_AT_A_TIME,
        post: async (body) => {
          for (let attempt = 0; ; attempt += 1) {
            const outcome = await postJoined(body)
            if (outcome.kind !== 'notApplied') return outcome
            const { reason } = outcome
            if (reason === 'leaseLost' && budget.leftMs() > 0 && (await permission?.renew()) === true)
              continue
            const waitMs = retryWaitMs(outcome, attempt)
            if (waitMs === undefined && reason === 'notConnected') isUnreachable = true
            const isHopeless = reason === 'notConnected' && isUnreachable
            if (waitMs === undefined || isHopeless || waitMs >= budget.leftMs()) return outcome
            // After a 429, pauses all calls with this subscription key, because V3 throttles by key.
            if (!(await budget.pause(waitMs, reason === 'throttled'))) return outcome
          }
        },
        withdraw: () => {
          const reason = new AdapterError(
            'ADP_BUDGET_EXCEEDED',
            'The record was withdrawn before it was sent.',
          )
          withdrawn.abort(reason)
          group.withdraw(reason)
        },
        leftMs: () => budget.leftMs(),
        queuedMs: () => queuedMs,
      }
    },
    close: () => connections.close(),
  }
}

function toOutcome<Outcome>({ read, readsParts }: PostKind<Outcome>, end: CallEnd): Outcome | Unanswered {
  const { failure, sent, status, fields, body } = end
  if (!sent) return notApplied(unsentReasonOf(failure))
  // A cut-off reply of status 300 or above still decides the outcome, because its body only explains the status.
  const isCut = failure !== undefined && status < 300
  const cut = isCut ? ({ kind: 'unknown', reason: lossOf(failure) } as const) : undefined
  if (cut !== undefined && (status < 200 || !readsParts)) return cut
  return read({
    status,
    cut,
    body: failure === undefined || cut !== undefined ? body.join() : NO_BYTES,
    contentType: fields.one('content-type'),
    retryAfter: status >= 400 ? fields.one('retry-after') : undefined,
  })
}

const NO_BYTES = Buffer.alloc(0)

const notApplied = (reason: NotAppliedReason): Unanswered => ({
  kind: 'notApplied',
  reason,
  retryAfterMs: undefined,
})

const codeOf = (cause: unknown): ErrorCode | undefined =>
  cause instanceof AdapterError ? cause.code : undefined

/** Returns the reason why a request was not sent. Errors of the adapter come from `beforeSend` or the budget, other errors from undici. */
function unsentReasonOf(failure: unknown): NotAppliedReason {
  const code = codeOf(failure)
  if (code === undefined) return 'notConnected'
  return code === 'ADP_JOURNAL_LOST' ? 'leaseLost' : 'budget'
}

function lossOf(failure: Error): UnknownReason {
  if (failure instanceof errors.ResponseExceededMaxSizeError) return 'unreadableReply'
  // The only error of the adapter that can occur here is `ADP_BUDGET_EXCEEDED`, which is a timeout.
  const isLate = [AdapterError, errors.HeadersTimeoutError, errors.BodyTimeoutError].some(
    (kind) => failure instanceof kind,
  )
  return isLate ? 'timeout' : 'connectionLost'
}

const RECORD_FIELDS = [
  'content-type', 'application/json',
  'accept', 'application/json',
  'odata-maxversion', '4.0',
  'prefer', 'return=representation',
] // prettier-ignore

const BATCH_FIELDS = [
  // The preference is named differently in OData 4.01 and 4.0. Without the preference, the service stops at the first refused record.
  'prefer', 'continue-on-error, odata.continue-on-error',
] // prettier-ignore

/** Only OData 4.01 has the JSON batch format. */
const BATCH_VERSIONS = { multipart: '4.0', json: '4.01' } as const
