import { AdapterError } from '../errors.ts'
import type { ConfirmedMark, Settled } from '../journal/index.ts'
import { v2ErrorRules, parseTime, toV2Failure } from '../translate/index.ts'
import type { PartReply } from '../v2/index.ts'
import type { NotAppliedReason, PostOutcome, UnknownReason, UpstreamError } from '../v3/index.ts'
import { encodeAnswer } from './reply.ts'

/**
 * What comes first for a record. `readBack`: it may have been applied before, so it is read back, and posted only if V3 does not show it.
 * `check`: it was not applied, and there may be a newer mark that the journal does not know; it is posted only after a read that shows
 * none.
 */
export type FirstStep = 'post' | 'readBack' | 'check'

/** The outcome of a record that was certainly not applied. */
export const notApplied = (reason: NotAppliedReason): NotApplied => ({
  kind: 'notApplied',
  reason,
  retryAfterMs: undefined,
})

type NotApplied = Extract<PostOutcome, { kind: 'notApplied' }>

/** The outcome of a record that is not sent now; one that may have been applied before stays unknown. */
export function unsentOutcome(
  first: FirstStep,
  reason: NotAppliedReason,
): NotApplied | Extract<PostOutcome, { kind: 'unknown' }> {
  return first === 'readBack' ? { kind: 'unknown', reason: 'notReadBack' } : notApplied(reason)
}

/** The reasons of outcomes that a read-back to its end has left open. */
const readBackInVain: ReadonlySet<string> = new Set<UnknownReason>([
  'connectionLost',
  'timeout',
  'unreadableReply',
  'serverError',
  'otherRecord',
])

/**
 * True for a record that was settled as unknown for this reason and was not sent since: a read-back ends only when its write can no longer
 * arrive, so the next read decides.
 */
export const canNoLongerArrive = (reason: string | undefined): boolean =>
  reason !== undefined && readBackInVain.has(reason)

/** True for 401 and 403: the credentials, not the record, are the cause. */
export function isDenial(error: UpstreamError): boolean {
  return error.status === 401 || error.status === 403
}

/** The error of a request whose credentials V3 denied before it accepted anything: `ADP_TOKEN` or `ADP_FORBIDDEN`, in V3's words. */
export function toDenialError(denial: UpstreamError): AdapterError {
  const text = denial.entries[0]?.message ?? ''
  const message = text === '' ? `The service denied the credentials (${denial.status}).` : text
  return new AdapterError(denial.status === 401 ? 'ADP_TOKEN' : 'ADP_FORBIDDEN', message)
}

/** The facts that decide how the records of one run continue. */
export interface FollowUp {
  /** False when the client gets a single 200, whatever happens (batch-wire 3). */
  readonly outcomesShown: boolean
  /** False if no client waits for the answer: recovery then retries records that were not applied. */
  readonly clientWaits: boolean
  readonly receivedMs: number
  readonly nowMs: number
}

/**
 * Pauses of the background: a twentieth of the age of the record, 5 s at the least and 10 min at the most, for a day after
 * receipt. They do not count attempts: one that ended with its process says nothing of the service. Short at first, since a
 * record may wait for an older one that has its own pause.
 */
const SHORTEST_PAUSE_MS = 5_000
const SHARE_OF_AGE = 1 / 20
const LONGEST_PAUSE_MS = 600_000
const RETRY_FOR_MS = 86_400_000

/**
 * The settlement of an outcome: its state, its part of the reply, and whether and when it is retried. A record that was not
 * applied waits for its client to send it again where the client gets that answer, and is retried by recovery where it does not;
 * an unknown outcome is read back again until it is known.
 */
export function settlementOf(
  position: number,
  outcome: PostOutcome,
  reply: PartReply,
  followUp: FollowUp,
): Settled {
  const { outcomesShown, clientWaits } = followUp
  const answer = encodeAnswer(reply)
  /** Nobody judged the record. `isTold`: its client was told to send it again. */
  const unjudged = (reason: string, isTold: boolean): Settled => {
    if (isTold) return { position, state: 'notApplied', answer, reason, retry: 'resend' }
    const retry = nextMs(followUp)
    if (retry !== undefined) return { position, state: 'parked', answer, reason, retry }
    return { position, state: 'notApplied', answer, reason, deadLetter: true }
  }
  switch (outcome.kind) {
    case 'accepted':
      return { position, state: 'confirmed', answer, mark: markOf(outcome.reply) }
    case 'refused': {
      const reason = reasonOf(outcome)
      // With other credentials the service may take it.
      if (isDenial(outcome.error)) return unjudged(reason, outcomesShown)
      return { position, state: 'refused', answer, reason, deadLetter: !outcomesShown }
    }
    case 'notApplied':
      return unjudged(outcome.reason, outcomesShown && clientWaits)
    case 'unknown': {
      const { reason } = outcome
      if (reason === 'superseded') return { position, state: 'unknown', answer, reason, superseded: true }
      const retry = reason === 'overwritten' ? undefined : nextMs(followUp)
      return { position, state: 'unknown', answer, reason, retry, deadLetter: retry === undefined }
    }
  }
}

/** The mark of a reply, as V3 or V2 show it. */
export function markOf({
  ExternalID,
  RecordedOn,
}: {
  readonly ExternalID: string
  readonly RecordedOn?: string | null | undefined
}): ConfirmedMark {
  return { externalId: ExternalID, recordedMs: parseTime(RecordedOn) }
}

/** The form of error codes. The service's own words may name a learner: they are for the client alone. */
const CODE = /^[A-Z]{2,8}(?:_[A-Z0-9]{1,16}){1,4}$/

function reasonOf(outcome: Extract<PostOutcome, { kind: 'refused' }>): string {
  const code = toV2Failure(outcome, v2ErrorRules).errors[0]?.code
  return code !== undefined && CODE.test(code) ? code : `HTTP_${outcome.error.status}`
}

/** The time after which a record received at `receivedMs` is not retried any more, ms since the epoch. */
export function retryDeadlineMs(receivedMs: number): number {
  return receivedMs + RETRY_FOR_MS
}

function nextMs({ nowMs, receivedMs }: FollowUp): number | undefined {
  if (nowMs >= retryDeadlineMs(receivedMs)) return undefined
  const ageMs = nowMs - receivedMs
  const pauseMs = Math.max(SHORTEST_PAUSE_MS, ageMs * SHARE_OF_AGE)
  return nowMs + Math.min(pauseMs, LONGEST_PAUSE_MS)
}
