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
  /** The base address. `/Attendance/V3/AttendanceRecords` is added to its path. */
  readonly baseUrl: URL
  /** Maximum number of open connections. Each carries one request at a time. Default 32. */
  readonly connections: number
  readonly timeouts: UpstreamTimeouts
  /** Returns the milliseconds since the epoch that a date in `Retry-After` is compared with. */
  readonly nowMs: () => number
  readonly clock: Clock
  /** Called for every call that left. Default none. */
  readonly onCall?: OnCall
  /** Starts the trace span of a call. */
  readonly trace?: ((kind: 'write' | 'batch' | 'read') => CallTrace | undefined) | undefined
  /** Runs work in a separate turn of the event loop. By default the work is done at once. */
  readonly later?: (act: () => void) => void
  /** Opens one connection. By default undici opens it. */
  readonly open?: OpenConnection | undefined
}

/** The credentials of the outer request, mapped for the upstream. Credentials inside a batch are never forwarded (batch-wire F24). */
export interface V3Credentials {
  readonly authorization: string
  readonly subscriptionKey: string
}

/** The writes of one batch. They share credentials, a deadline and a rate limit. */
export interface V3Writes {
  /** Posts a record's JSON. Retries while it was not applied and time is left, but never after an unknown outcome. Never rejects. */
  post(body: string): Promise<PostOutcome>
  /** The number of posts that keep the batches filled, or `undefined` if records are posted singly at the partner's concurrency. */
  readonly atATime: number | undefined
  /** Stops sending. Records that have not left are `notApplied`. */
  withdraw(): void
  leftMs(): number
  /** Returns the longest time that a call has waited for the rate limit, in milliseconds. */
  queuedMs(): number
}

export interface SendPermission {
  /** Called when a request is written to its socket, so it must be cheap. The request is not written if it returns false. */
  maySend(): boolean
  /** Called after `maySend` returned false. Resolves with false if nothing may be posted any longer; the record is then `leaseLost`. */
  renew(): Promise<boolean>
}

interface WriteOptions {
  readonly budgetMs: number
  /** If `undefined`, no call waits for a rate limit. */
  readonly rateLimit?: RateLimit | undefined
  /** Default: records may always be posted. */
  readonly permission?: SendPermission
  readonly queueKey?: QueueKey
  /** Joins the posts of one turn of the event loop into `$batch` calls. */
  readonly batch?: BatchChoice | undefined
}

export interface V3Client {
  /** Opens the writes of one batch. When its budget is over, unsent records are `notApplied` and sent ones `unknown`. */
  openWrites(credentials: V3Credentials, options: WriteOptions): V3Writes
  /** Waits for calls in flight, then closes the connections. */
  close(): Promise<void>
}

/** Maximum size of an answer to one record. */
const MAX_REPLY_BYTES = 1_048_576
/** The bytes that each record adds to the maximum size of a batch reply. */
const MAX_PART_BYTES = 8_192
/** Maximum number of batches in flight: one is answered while the next is filled. */
const BATCHES_AT_A_TIME = 2

/** A larger reply is read in a separate turn of the event loop, because many may arrive in one turn. */
const LARGE_REPLY_BYTES = 32_768

interface PostKind<Outcome> {
  readonly path: string
  readonly headers: string[]
  readonly options: CallOptions
  /** The time from the end of the request to the head of its reply, in ms. */
  readonly headersMs: number
  readonly read: (reply: UpstreamReply) => Outcome
  /** True if the part of a broken-off reply that did arrive is read too. */
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
      // If the upstream accepted no connection in all attempts for one record, the other records do not wait for it again.
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
      /** Posts once. Never retries, because a POST is not idempotent. */
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
          // A reply that cannot be read says nothing about a request that left.
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
              // A service may apply all records before it begins its reply.
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
            // The limit belongs to the key: while it is paused, no call with this key can succeed.
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
  // After a status other than 2xx, only the explanation was lost.
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

/** Returns why a request was not sent. Errors of the adapter come from `beforeSend` and from the budget, all others from undici. */
function unsentReasonOf(failure: unknown): NotAppliedReason {
  const code = codeOf(failure)
  if (code === undefined) return 'notConnected'
  return code === 'ADP_JOURNAL_LOST' ? 'leaseLost' : 'budget'
}

function lossOf(failure: Error): UnknownReason {
  if (failure instanceof errors.ResponseExceededMaxSizeError) return 'unreadableReply'
  // `ADP_BUDGET_EXCEEDED` is the only error of the adapter that can occur here.
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
  // The option has one name in OData 4.01 and another in 4.0. Without it the service stops at the first record that it refuses.
  'prefer', 'continue-on-error, odata.continue-on-error',
] // prettier-ignore

/** The JSON batch format exists only in OData 4.01. */
const BATCH_VERSIONS = { multipart: '4.0', json: '4.01' } as const
