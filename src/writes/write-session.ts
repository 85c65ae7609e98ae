import { AdapterError } from '../errors.ts'
import { ownDenialOf } from '../partners/credentials.ts'
import type { Authorisation } from '../partners/partner.ts'
import { isReplyTo } from '../translate/index.ts'
import {
  encodeRecord,
  type NotAppliedReason,
  type PostOutcome,
  type ReadOutcome,
  runBounded,
  type SendPermission,
  type SentTogether,
  type UpstreamError,
  type V3Credentials,
  type V3Record,
  type V3Writes,
} from '../v3/index.ts'
import type { WriteContext } from './context.ts'
import { createExecutions } from './execution.ts'
import { watchGiveWay } from './predecessors.ts'
import { createResolveUnknown } from './resolve-unknown.ts'
import { type FirstStep, isDenial, notApplied, unsentOutcome } from './settlement-policy.ts'

export interface WriteTask {
  readonly position: number
  readonly record: V3Record
  /** The time of the mark, see `Plan.markedMs`. */
  readonly receivedMs: number
  readonly first: FirstStep
  /** True if the record was sent before and can no longer arrive at V3. */
  readonly isPast: boolean
  /** Resolves with true once the older records of the key have ended, or with false if they end too late. `undefined` if there are none. */
  readonly after: Promise<boolean> | undefined
}

/** Receives the outcome of the record at `position`, once for each task. */
type OnOutcome = (position: number, outcome: PostOutcome) => void

export type WriteSession = ReturnType<typeof openWriteSession>

export interface SessionOptions {
  /** Present if recovery posts the records, `concurrency` at a time. None of them was sent after `sinceMs`. Absent if a client waits. */
  readonly background?: { readonly concurrency: number; readonly sinceMs: number | undefined }
  /** True if the batch was first begun for V2. Newer records may then precede its records in the journal. Default false. */
  readonly wasOnV2?: boolean
  /** Maximum number of records that are sent together, see `StoredRequest`. Default: the partner's maximum for one `$batch`. */
  readonly together?: number | undefined
}

/** Opens a session that posts records. If V3 replies 401 to the adapter's own token before any other outcome, renews the token once. */
export function openWriteSession(
  context: WriteContext,
  authorisation: Authorisation,
  batch: number,
  { background, wasOnV2 = false, together }: SessionOptions = {},
) {
  const { partner, rateLimit, renew } = authorisation
  const { maxRecords = 1 } = partner.batch ?? {}
  const atOnce = together ?? maxRecords
  const executionOf = createExecutions(partner, context.clock)
  const { clock, echoes } = context
  const queueKey = context.accepted.queueKey(authorisation)
  const slices = context.slicing.open()
  const { promise: withdrawn, resolve: withdraw } = Promise.withResolvers<undefined>()
  let queuedMs = 0
  let current: V3Writes | undefined
  let isDenied = false
  let isAccepted = false
  let mayRenew = renew !== undefined
  const queued = (): number => Math.max(queuedMs, current?.queuedMs() ?? 0)
  /** Returns the error if V3 denied the adapter's own credentials. A 401 does not count while the token may still be renewed. */
  const ownDenial = (error: UpstreamError): AdapterError | undefined =>
    error.status === 401 && mayRenew ? undefined : ownDenialOf(context.accepted, partner, error)
  const onDenied = (error: UpstreamError): void => {
    if (!isDenial(error)) return
    isDenied = true
    if (error.status === 401 && renew === undefined) context.accepted.deny(authorisation)
  }
  const onAccepted = (): void => {
    if (isAccepted) return
    isAccepted = true
    context.verdicts.accept(batch, authorisation.identity)
    context.accepted.accept(authorisation)
  }
  const read = async (query: string, credentials: V3Credentials, leftMs: number): Promise<ReadOutcome> => {
    const outcome = await readPaced(context, { ...authorisation, credentials }, query, leftMs)
    if (outcome.kind === 'read') context.accepted.accept(authorisation)
    else if (outcome.kind === 'refused' && ownDenial(outcome.error) === undefined) onDenied(outcome.error)
    return outcome
  }
  /** The number of records that an earlier run may have sent in a `$batch`, and the maximum number of records in such a `$batch`. */
  let sentBefore: SentTogether & { readonly atOnce: number } = { records: 0, atOnce: 1 }
  const executionBefore = ({ first, isPast }: WriteTask) =>
    first === 'readBack' && !isPast && sentBefore.atOnce > 1
      ? executionOf(sentBefore, background?.sinceMs)
      : undefined
  /** Returns `Execution.sinceMs` of the task's `$batch` while V3 may still be executing it, or `undefined` if no such `$batch` is known. */
  const executingSince = (task: WriteTask): number | undefined => {
    const execution = executionBefore(task)
    return execution !== undefined && clock.nowMs() < execution.untilMs() ? execution.sinceMs() : undefined
  }
  const unsent = (task: WriteTask, reason: NotAppliedReason): PostOutcome => {
    const sinceMs = executingSince(task)
    return sinceMs === undefined
      ? unsentOutcome(task.first, reason)
      : { kind: 'unknown', reason: 'stillExecuting', sinceMs }
  }
  /** Posts the records. Returns the error of a denial that came before every other outcome, or `undefined` if there was no such denial. */
  const postWith = async (
    credentials: V3Credentials,
    tasks: readonly WriteTask[],
    permission: SendPermission,
    onOutcome: OnOutcome,
  ): Promise<UpstreamError | undefined> => {
    const { budgetMs, batch: own, bodyProfile } = partner
    const choice = own && { ...own, maxRecords: Math.min(own.maxRecords, atOnce) }
    const writes = context.v3.openWrites(credentials, {
      budgetMs,
      rateLimit,
      batch: atOnce > 1 ? choice : undefined,
      permission,
      queueKey,
    })
    current = writes
    // If newer records wait too long, withdraws the unsent records. The newer records still wait for records that V3 may be executing.
    const giveWay = background === undefined ? watchGiveWay(context, batch, queueKey) : undefined
    const yieldToNewer = (): void => {
      writes.withdraw()
      withdraw(undefined)
    }
    giveWay?.due.then(yieldToNewer, () => undefined)
    const resolveUnknown = createResolveUnknown(context, {
      batch,
      partner,
      wasOnV2,
      spacingMs: partner.readBackAfterMs,
      leftMs: () => writes.leftMs(),
      executionOf,
      clientWaits: background === undefined,
      read: (query) => read(query, credentials, writes.leftMs()),
    })
    const check = (record: V3Record, outcome: PostOutcome): PostOutcome => {
      if (outcome.kind !== 'accepted') return outcome
      // A reply with another learner or event does not show whether V3 applied the posted record.
      if (!isReplyTo(record, outcome.reply)) return { kind: 'unknown', reason: 'otherRecord' }
      echoes.accepted(record, bodyProfile === 'full', outcome.reply)
      return outcome
    }
    const postRecord = async (task: WriteTask): Promise<void> => {
      const { position, record, first, after } = task
      if (after !== undefined && !(await after)) {
        report(position, unsent(task, permission.maySend() ? 'budget' : 'leaseLost'))
        return
      }
      if (!permission.maySend() && !(await permission.renew())) {
        report(position, unsent(task, 'leaseLost'))
        return
      }
      const body = encodeRecord(record, bodyProfile)
      slices.spend(body.length)
      const fromMs = clock.nowMs()
      const outcome = first === 'post' ? check(record, await writes.post(body)) : undefined
      if (outcome !== undefined && outcome.kind !== 'unknown') report(position, outcome)
      else report(position, await readBack(task, body, outcome, fromMs))
    }
    /** Reads V3 for a record whose reply was lost just now (`lost`), that may have been applied before this run, or that needs a check. */
    const readBack = (
      task: WriteTask,
      body: string,
      lost: Extract<PostOutcome, { kind: 'unknown' }> | undefined,
      fromMs: number,
    ): Promise<PostOutcome> => {
      const again = async (): Promise<PostOutcome> => check(task.record, await writes.post(body))
      const execution = lost === undefined ? executionBefore(task) : executionOf(lost.together)
      if (lost !== undefined)
        return resolveUnknown(task, again, lost.reason, { how: 'now', fromMs, execution })
      if (task.first === 'check') return postUnlessNewer(task, again)
      return resolveUnknown(task, again, 'connectionLost', {
        how: 'before',
        toMs: background?.sinceMs,
        isPast: task.isPast,
        execution,
      })
    }
    /** Posts a record unless V3 shows a newer mark. If V3 cannot be read, does not post the record, which counts as not applied. */
    const postUnlessNewer = async (
      task: WriteTask,
      post: () => Promise<PostOutcome>,
    ): Promise<PostOutcome> => {
      let posted: Promise<PostOutcome> | undefined
      const postNoted = (): Promise<PostOutcome> => (posted = post())
      const outcome = await resolveUnknown(task, postNoted, 'connectionLost', { how: 'never' })
      if (posted !== undefined || outcome.kind !== 'unknown') return outcome
      return outcome.reason === 'overwritten' || outcome.reason === 'superseded'
        ? outcome
        : notApplied('unavailable')
    }
    const { report, denial } = holdDenials((position, outcome) => {
      if (outcome.kind === 'accepted') onAccepted()
      else if (outcome.kind === 'refused') {
        // V3 denied the adapter's own credentials after another outcome. The token is not renewed for a single record, so the record counts
        // as not applied.
        if (ownDenialOf(context.accepted, partner, outcome.error) !== undefined) {
          onOutcome(position, notApplied('ownCredentials'))
          return
        }
        onDenied(outcome.error)
      }
      onOutcome(position, outcome)
    })
    try {
      await runBounded({
        count: tasks.length,
        concurrency: writes.atATime ?? background?.concurrency ?? partner.concurrency,
        waitOf: (index) => tasks[index]?.after,
        start: (index) => {
          const task = tasks[index]
          return task === undefined ? Promise.resolve() : postRecord(task)
        },
        // Sends no further record once V3 has denied the credentials, unless another outcome has arrived.
        stopped: () => denial() !== undefined,
        pause: () => (slices.spend(0) ? slices.next() : undefined),
      })
      return denial()
    } finally {
      giveWay?.stop()
      queuedMs = queued()
      current = undefined
    }
  }
  return {
    partner: partner.id,
    executingSince,
    budgetMs: partner.budgetMs,
    /**
     * Posts every record within the partner's budget. If V3 denied the credentials before any other outcome (product contract 1), reports
     * no outcome and returns V3's error, or the error of the token endpoint if the token could not be renewed. Otherwise returns
     * `undefined`, and a denial counts only for its record.
     */
    postRecords: async (
      tasks: readonly WriteTask[],
      permission: SendPermission,
      onOutcome: OnOutcome,
    ): Promise<UpstreamError | AdapterError | undefined> => {
      const records = tasks.filter(({ first, isPast }) => first === 'readBack' && !isPast).length
      sentBefore = { records, atOnce }
      let denial = await postWith(authorisation.credentials, tasks, permission, onOutcome)
      if (renew !== undefined && denial?.status === 401) {
        const renewed = await renew().catch(toAdapterError)
        mayRenew = false
        if (renewed instanceof AdapterError) return renewed
        denial = await postWith(renewed, tasks, permission, onOutcome)
      }
      if (denial === undefined) return undefined
      const own = ownDenial(denial)
      if (own === undefined) onDenied(denial)
      return own ?? denial
    },
    /** Resolves when the unsent records are withdrawn, because newer records waited for them and V3 had not accepted the credentials. */
    withdrawn,
    /** Returns true once the service denied the credentials in any call, including reads. */
    denied: (): boolean => isDenied,
    /** Returns the longest time in milliseconds that a call has spent in the queue of the rate limit. */
    queuedMs: (): number => Math.round(queued()),
    /** Returns the value of `Server-Timing`, or `undefined` without a rate limit. */
    timing: (): string | undefined =>
      rateLimit === undefined ? undefined : `queue;dur=${Math.round(queued())}`,
  }
}

/** Holds back denials of records until another outcome shows that V3 does not deny the credentials of the whole batch. */
function holdDenials(onOutcome: OnOutcome): {
  readonly report: OnOutcome
  /** Returns the first denial, as long as only denials have arrived. */
  readonly denial: () => UpstreamError | undefined
} {
  let heldBack: { readonly position: number; readonly outcome: Refused }[] | undefined = []
  return {
    report: (position, outcome) => {
      if (heldBack !== undefined && outcome.kind === 'refused' && isDenial(outcome.error)) {
        heldBack.push({ position, outcome })
        return
      }
      const earlier = heldBack ?? []
      heldBack = undefined
      for (const one of earlier) onOutcome(one.position, one.outcome)
      onOutcome(position, outcome)
    },
    denial: () => heldBack?.[0]?.outcome.error,
  }
}

type Refused = Extract<PostOutcome, { kind: 'refused' }>

function toAdapterError(cause: unknown): AdapterError {
  return cause instanceof AdapterError
    ? cause
    : new AdapterError(
        'ADP_INTERNAL',
        'The token of the adapter could not be renewed. Nothing was applied. Tell the operator of the adapter.',
        { cause },
      )
}

/** Reads from V3 with the priority of a write, within the budget of the batch. */
export async function readPaced(
  { clock, reader, accepted }: Pick<WriteContext, 'clock' | 'reader' | 'accepted'>,
  authorisation: Authorisation,
  query: string,
  leftMs: number,
): Promise<ReadOutcome> {
  const { rateLimit, credentials } = authorisation
  const queueKey = accepted.queueKey(authorisation)
  const startedMs = clock.nowMs()
  if (rateLimit !== undefined) {
    const { admitted } = await rateLimit.acquire('write', leftMs, queueKey)
    if (!admitted) return nothingRead
  }
  // Passes no abort signal, so that the read continues if the client disconnects.
  const left = leftMs - (clock.nowMs() - startedMs)
  const outcome = await reader.get('AttendanceRecords', query, credentials, undefined, left, queueKey)
  return outcome.kind === 'busy' ? nothingRead : outcome
}

const nothingRead: ReadOutcome = { kind: 'unavailable', reason: 'notConnected', retryAfterMs: undefined }
