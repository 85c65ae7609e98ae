import { AdapterError } from '../errors.ts'
import { parseTime } from '../translate/index.ts'
import type { RateLimit, QueueKey } from '../upstream/index.ts'
import type { PostOutcome, ReadOutcome, UpstreamError, V3Credentials, V3Writes } from '../v3/index.ts'
import type { WriteContext } from './context.ts'
import type { Authorisation } from '../partners/partner.ts'
import { watchGiveWay } from './give-way.ts'
import { createReadBack, type ReadBackParts } from './read-back.ts'
import { ownDenialOf } from '../partners/own-denial.ts'
import { isDenial } from './denial.ts'
import {
  type OnOutcome,
  type Permission,
  postRecords,
  type PostOptions,
  type WriteTask,
} from './post-records.ts'

/** Posts the records of one request under its credentials. */
export interface WriteSession {
  /** The partner's id. */
  readonly partner: string
  /** Time for all records of the request. */
  readonly budgetMs: number
  /**
   * Posts every record within the partner's budget. Resolves why nothing was taken, where the credentials were denied before
   * anything was: the upstream's error, or that of the token endpoint which then had no other token.
   */
  postRecords(
    tasks: readonly WriteTask[],
    onOutcome: OnOutcome,
    permission: Permission,
  ): Promise<UpstreamError | AdapterError | undefined>
  /** Resolves once nothing is sent any more, since newer records waited for these and their credentials were not accepted. */
  readonly withdrawn: Promise<void>
  /** True once the service denied the credentials to one of the calls, reads included. */
  denied(): boolean
  /** The longest time that a call stood in the throttle's queue so far, ms. */
  queuedMs(): number
  /** The value of `Server-Timing`; undefined where nothing holds calls back. */
  timing(): string | undefined
}

/** What distinguishes the session of a request. */
export interface SessionOptions {
  /** Default: a client waits. */
  readonly background?: InBackground
  /** True: the batch was begun for V2 before, so newer records may have earlier places in the journal. Default false. */
  readonly wasOnV2?: boolean
}

/** How recovery posts records. */
export interface InBackground {
  /** Records under way at the same time. */
  readonly concurrency: number
  /** By the clock, ms: none of them was sent after this; undefined: unknown. */
  readonly sinceMs: number | undefined
}

/**
 * Opens the session of one request. A token of the adapter's own that V3 refuses (401) before it accepted anything is renewed
 * once, and the records go out again: nothing had been applied.
 */
export function openWriteSession(
  context: WriteContext,
  authorisation: Authorisation,
  batch: number,
  { background, wasOnV2 = false }: SessionOptions = {},
): WriteSession {
  const { partner, rateLimit, renew } = authorisation
  const { echoes } = context
  const queueKey = context.queueKeys.of(authorisation)
  const slices = context.slicing.open()
  const timeSent = partner.bodyProfile === 'full'
  const concurrency = background?.concurrency ?? partner.concurrency
  let queuedMs = 0
  let current: V3Writes | undefined
  let denied = false
  let accepted = false
  let mayRenew = renew !== undefined
  const seen = <Outcome extends ReadOutcome | PostOutcome>(outcome: Outcome): Outcome => {
    if (outcome.kind === 'refused') {
      if (ownDenial(outcome.error) === undefined) noteDenial(outcome.error)
    } else if (outcome.kind === 'accepted' && !accepted) {
      accepted = true
      context.queueKeys.accept(authorisation)
      context.verdicts.accept(batch, authorisation.identity)
      context.accepted.accept(authorisation)
    } else if (outcome.kind === 'read') context.accepted.accept(authorisation)
    return outcome
  }
  const noteDenial = (error: UpstreamError): void => {
    if (!isDenial(error)) return
    denied = true
    if (error.status === 401 && renew === undefined) context.accepted.deny(authorisation)
  }
  let withdraw = (): void => undefined
  const withdrawn = new Promise<void>((resolve) => {
    withdraw = resolve
  })
  /** A token may have ended before its time: only what V3 says to the next one counts. */
  const ownDenial = (error: UpstreamError): AdapterError | undefined =>
    error.status === 401 && mayRenew ? undefined : ownDenialOf(context.accepted, partner, error)
  const queued = (): number => Math.max(queuedMs, current?.queuedMs() ?? 0)
  const sendWith = async (
    credentials: V3Credentials,
    tasks: readonly WriteTask[],
    onOutcome: OnOutcome,
    permission: Permission,
  ): Promise<UpstreamError | undefined> => {
    const maySend = (): boolean => permission.maySend()
    const writes = context.v3.openWrites(credentials, {
      budgetMs: partner.budgetMs,
      rateLimit,
      batch: partner.batch,
      maySend,
      queueKey,
    })
    current = writes
    // Recovery finishes what may have been sent: newer records wait for that.
    const giveWay = background === undefined ? watchGiveWay(context, batch, queueKey) : undefined
    void giveWay?.due.then(() => {
      writes.withdraw()
      withdraw()
    })
    try {
      const readBack = createReadBack({
        read: async (query) =>
          seen(await readPaced(context, rateLimit, queueKey, credentials, query, writes.leftMs())),
        wait: (ms) => new Promise((done) => context.clock.after(ms, done)),
        nowMs: () => context.clock.nowMs(),
        leftMs: () => writes.leftMs(),
        spacingMs: partner.readBackAfterMs,
        profile: () => echoes.profile(),
        known: knownMarksOf(context, batch, wasOnV2),
        wallMs: context.nowMs,
        byV2: wasOnV2,
        onProof: (record, shown) => echoes.readBack(record, shown),
        onVisible: context.onVisible,
      })
      const { bodyProfile } = partner
      const onAccepted: PostOptions['onAccepted'] = (record, reply) =>
        echoes.accepted(record, timeSent, reply)
      const sentMs = background?.sinceMs
      const options = {
        ...{ writes, concurrency, bodyProfile, readBack, onAccepted, permission, sentMs, slices },
        nowMs: () => context.clock.nowMs(),
      }
      return await postRecords(tasks, options, (position, outcome) => {
        // Nothing is sent again under another token once a record was accepted.
        const isOwn =
          outcome.kind === 'refused' && ownDenialOf(context.accepted, partner, outcome.error) !== undefined
        onOutcome(position, isOwn ? deniedForOurs : seen(outcome))
      })
    } finally {
      giveWay?.stop()
      queuedMs = queued()
      current = undefined
      writes.close()
    }
  }
  return {
    partner: partner.id,
    budgetMs: partner.budgetMs,
    postRecords: async (tasks, onOutcome, permission) => {
      const toCause = (denial: UpstreamError | undefined): UpstreamError | AdapterError | undefined => {
        if (denial === undefined) return undefined
        const own = ownDenial(denial)
        if (own === undefined) noteDenial(denial)
        return own ?? denial
      }
      const denial = await sendWith(authorisation.credentials, tasks, onOutcome, permission)
      if (renew === undefined || denial?.status !== 401) return toCause(denial)
      const renewed = await renew().catch(toAdapterError)
      mayRenew = false
      return renewed instanceof AdapterError
        ? renewed
        : toCause(await sendWith(renewed, tasks, onOutcome, permission))
    },
    withdrawn,
    denied: () => denied,
    queuedMs: () => Math.round(queued()),
    timing: () => (rateLimit === undefined ? undefined : `queue;dur=${Math.round(queued())}`),
  }
}

/** What the journal knows of the keys of a batch. One that takes the place of a batch on V2 counts from the time of that one. */
export const knownMarksOf =
  ({ journal }: Pick<WriteContext, 'journal'>, batch: number, wasOnV2: boolean): ReadBackParts['known'] =>
  (record, position) =>
    journal.knownMarks({ batch, position }, wasOnV2 ? parseTime(record.RecordedOn) : undefined)

const deniedForOurs: PostOutcome = { kind: 'notApplied', reason: 'ownCredentials', retryAfterMs: undefined }

function toAdapterError(cause: unknown): AdapterError {
  return cause instanceof AdapterError ? cause : new AdapterError('ADP_INTERNAL', 'No token.', { cause })
}

/** A read-back of a lost write: it has the priority of a write in the queue, and ends with the budget of its batch. */
export async function readPaced(
  context: WriteContext,
  rateLimit: RateLimit | undefined,
  queueKey: QueueKey,
  credentials: V3Credentials,
  query: string,
  leftMs: number,
): Promise<ReadOutcome> {
  const startedMs = context.clock.nowMs()
  if (rateLimit !== undefined) {
    const { admitted } = await rateLimit.acquire('write', rateLimit.nowMs() + leftMs, queueKey)
    if (!admitted) return nothingRead
  }
  // It continues even if its client disconnects.
  const left = leftMs - (context.clock.nowMs() - startedMs)
  const outcome = await context.reader.get('AttendanceRecords', query, credentials, undefined, left, queueKey)
  return outcome.kind === 'busy' ? nothingRead : outcome
}

const nothingRead: ReadOutcome = { kind: 'unavailable', reason: 'notConnected', retryAfterMs: undefined }
