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
  /** Begins the span of a call. */
  readonly trace?: ((kind: 'write' | 'batch' | 'read') => CallTrace | undefined) | undefined
  /** Runs work in a turn of the event loop of its own; by default it is done at once. */
  readonly later?: (act: () => void) => void
  /** Opens one connection. Default: with undici. */
  readonly open?: OpenConnection | undefined
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
}

/** Whether records may still be posted from this process. */
export interface SendPermission {
  /** Asked when a request is written to its socket, so it must cost next to nothing: on false it is not written. */
  maySend(): boolean
  /** Asked after `maySend` gave false; resolves false where nothing may be posted any longer: the record is `leaseLost`. */
  renew(): Promise<boolean>
}

/** How the calls of one batch are made. */
interface WriteOptions {
  readonly budgetMs: number
  /** Undefined: nothing is queued. */
  readonly rateLimit?: RateLimit | undefined
  /** Whether records may still be posted from here. Default: always. */
  readonly permission?: SendPermission
  readonly queueKey?: QueueKey
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

/** A larger reply is read in a turn of the event loop of its own: many may arrive in one turn. */
const LARGE_REPLY_BYTES = 32_768

/** One kind of POST: how it is called, and how its reply is read. */
interface PostKind<Outcome> {
  readonly path: string
  readonly headers: string[]
  readonly options: CallOptions
  /** The time from the end of the request to the head of its reply, ms. */
  readonly headersMs: number
  readonly read: (reply: UpstreamReply) => Outcome
  /** True: what arrived of a reply that broke off is read too. */
  readonly readsParts: boolean
}

/** Creates the client of one V3 upstream over undici. */
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
      // An upstream that took no connection through all tries of one record costs the others no more waiting.
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
      /** Never repeats: a POST is not idempotent. */
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
          // Whatever its reader stumbled over: of a request that left, no more is known.
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
            // The limit is the key's: while it is paused, no call with this key can succeed.
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
  // With a status line that is no 2xx, only the explanation was lost.
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

/** Why a POST never left: the adapter's own errors are those of `beforeSend` and of its time, all others undici's. */
function unsentReasonOf(failure: unknown): NotAppliedReason {
  const code = codeOf(failure)
  if (code === undefined) return 'notConnected'
  return code === 'ADP_JOURNAL_LOST' ? 'leaseLost' : 'budget'
}

/** Why a POST that left has no readable reply. */
function lossOf(failure: Error): UnknownReason {
  if (failure instanceof errors.ResponseExceededMaxSizeError) return 'unreadableReply'
  // `ADP_BUDGET_EXCEEDED` is the only one of the adapter's own.
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
  // The name of 4.01 and that of 4.0: without it the service stops at the first record that it refuses.
  'prefer', 'continue-on-error, odata.continue-on-error',
] // prettier-ignore

/** The JSON format of batches is one of 4.01. */
const BATCH_VERSIONS = { multipart: '4.0', json: '4.01' } as const
