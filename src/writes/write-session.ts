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

/** One record to be posted. */
export interface WriteTask {
  /** Its place in the request. */
  readonly position: number
  readonly record: V3Record
  /** See `Plan.markedMs`. */
  readonly receivedMs: number
  readonly first: FirstStep
  /** It was sent before, and can no longer arrive. */
  readonly isPast: boolean
  /** Older records of the same key: resolves false when they did not end in time; undefined: there are none. */
  readonly after: Promise<boolean> | undefined
}

/** Receives the outcome of the record at `position`, once for each task. */
type OnOutcome = (position: number, outcome: PostOutcome) => void

/** Posts the records of one request under its credentials. */
export type WriteSession = ReturnType<typeof openWriteSession>

/** What distinguishes the session of a request. */
export interface SessionOptions {
  /** Recovery posts the records: so many at a time; by the clock, none of them was sent after `sinceMs`. Default: a client waits. */
  readonly background?: { readonly concurrency: number; readonly sinceMs: number | undefined }
  /** True: the batch was begun for V2 before, so newer records may have earlier places in the journal. Default false. */
  readonly wasOnV2?: boolean
  /** See `StoredRequest`: no more of its records are sent together. Default: as many as the partner has in one `$batch`. */
  readonly together?: number | undefined
}

/**
 * Opens the session of one request. A token of the adapter's own that V3 refuses (401) before it accepted anything is renewed
 * once, and the records go out again: nothing had been applied.
 */
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
  /** A token may have ended before its time: only what V3 says to the next one counts. */
  const ownDenial = (error: UpstreamError): AdapterError | undefined =>
    error.status === 401 && mayRenew ? undefined : ownDenialOf(context.accepted, partner, error)
  const noteDenial = (error: UpstreamError): void => {
    if (!isDenial(error)) return
    isDenied = true
    if (error.status === 401 && renew === undefined) context.accepted.deny(authorisation)
  }
  const noteAccepted = (): void => {
    if (isAccepted) return
    isAccepted = true
    context.verdicts.accept(batch, authorisation.identity)
    context.accepted.accept(authorisation)
  }
  const read = async (query: string, credentials: V3Credentials, leftMs: number): Promise<ReadOutcome> => {
    const outcome = await readPaced(context, { ...authorisation, credentials }, query, leftMs)
    if (outcome.kind === 'read') context.accepted.accept(authorisation)
    else if (outcome.kind === 'refused' && ownDenial(outcome.error) === undefined) noteDenial(outcome.error)
    return outcome
  }
  /** The records of a run that may have been sent before, in one `$batch` perhaps, which may not be over. */
  let sentBefore: SentTogether & { readonly atOnce: number } = { records: 0, atOnce: 1 }
  const executionBefore = ({ first, isPast }: WriteTask) =>
    first === 'readBack' && !isPast && sentBefore.atOnce > 1
      ? executionOf(sentBefore, background?.sinceMs)
      : undefined
  /** The time since which no record of the `$batch` of a task was seen; undefined: V3 cannot apply it any more. */
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
  /** Resolves the error of a denial that came before any other outcome. */
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
    // Recovery finishes what may have been sent: newer records wait for that.
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
      // An answer about another record says nothing about this one.
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
    /** Reads the record back: it may have been applied before this run, or just now (`lost`). */
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
    /** Where nothing can be read, the record stays what it was: not applied. */
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
      if (outcome.kind === 'accepted') noteAccepted()
      else if (outcome.kind === 'refused') {
        // Nothing is sent again under another token once a record was accepted.
        if (ownDenialOf(context.accepted, partner, outcome.error) !== undefined) {
          onOutcome(position, notApplied('ownCredentials'))
          return
        }
        noteDenial(outcome.error)
      }
      onOutcome(position, outcome)
    })
    try {
      await runBounded({
        count: tasks.length,
        concurrency: writes.atATime ?? background?.concurrency ?? partner.concurrency,
        holdOf: (index) => tasks[index]?.after,
        start: (index) => {
          const task = tasks[index]
          return task === undefined ? Promise.resolve() : postRecord(task)
        },
        // As long as every answer is a denial, no further record is sent.
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
    /** The partner's id. */
    partner: partner.id,
    executingSince,
    /** Time for all records of the request. */
    budgetMs: partner.budgetMs,
    /**
     * Posts every record within the partner's budget. Resolves why nothing was taken, where the credentials were denied before
     * anything was (product contract 1): the upstream's error, or that of the token endpoint which then had no other token. No outcome
     * is reported then. After the first outcome, a denial is reported for its record.
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
      if (own === undefined) noteDenial(denial)
      return own ?? denial
    },
    /** Resolves once nothing is sent any more, since newer records waited for these and their credentials were not accepted. */
    withdrawn,
    /** True once the service denied the credentials to one of the calls, reads included. */
    denied: (): boolean => isDenied,
    /** The longest time that a call stood in the throttle's queue so far, ms. */
    queuedMs: (): number => Math.round(queued()),
    /** The value of `Server-Timing`; undefined where nothing holds calls back. */
    timing: (): string | undefined =>
      rateLimit === undefined ? undefined : `queue;dur=${Math.round(queued())}`,
  }
}

/**
 * Holds denials of records back until another outcome shows that the credentials are taken: a denial among the first answers was
 * an exception then.
 */
function holdDenials(onOutcome: OnOutcome): {
  readonly report: OnOutcome
  /** The first denial, as long as nothing but denials has come. */
  readonly denial: () => UpstreamError | undefined
} {
  let held: { readonly position: number; readonly outcome: Refused }[] | undefined = []
  return {
    report: (position, outcome) => {
      if (held !== undefined && outcome.kind === 'refused' && isDenial(outcome.error)) {
        held.push({ position, outcome })
        return
      }
      const earlier = held ?? []
      held = undefined
      for (const one of earlier) onOutcome(one.position, one.outcome)
      onOutcome(position, outcome)
    },
    denial: () => held?.[0]?.outcome.error,
  }
}

type Refused = Extract<PostOutcome, { kind: 'refused' }>

function toAdapterError(cause: unknown): AdapterError {
  return cause instanceof AdapterError ? cause : new AdapterError('ADP_INTERNAL', 'No token.', { cause })
}

/** A read-back of a lost write: it has the priority of a write in the queue, and ends with the budget of its batch. */
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
  // It continues even if its client disconnects.
  const left = leftMs - (clock.nowMs() - startedMs)
  const outcome = await reader.get('AttendanceRecords', query, credentials, undefined, left, queueKey)
  return outcome.kind === 'busy' ? nothingRead : outcome
}

const nothingRead: ReadOutcome = { kind: 'unavailable', reason: 'notConnected', retryAfterMs: undefined }
