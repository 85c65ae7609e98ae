import { AdapterError } from '../errors.ts'
import type { ConfirmedMark, Settled } from '../journal/index.ts'
import { v2ErrorRules, parseTime, toV2Failure } from '../translate/index.ts'
import type { PartReply } from '../v2/index.ts'
import type { NotAppliedReason, PostOutcome, UnknownReason, UpstreamError } from '../v3/index.ts'
import { encodeAnswer } from './reply.ts'

/**
 * The first step for a record. `readBack`: the record may have been applied, so it is posted only if V3 does not show its mark. `check`:
 * the record was not applied, but V3 may have a newer mark that the journal does not know. The record is posted only if a read shows no
 * newer mark.
 */
export type FirstStep = 'post' | 'readBack' | 'check'

export const notApplied = (reason: NotAppliedReason): NotApplied => ({
  kind: 'notApplied',
  reason,
  retryAfterMs: undefined,
})

type NotApplied = Extract<PostOutcome, { kind: 'notApplied' }>

/** Returns the outcome of a record that was not sent now. A record that may have been applied before stays unknown. */
export function unsentOutcome(
  first: FirstStep,
  reason: NotAppliedReason,
): NotApplied | Extract<PostOutcome, { kind: 'unknown' }> {
  return first === 'readBack' ? { kind: 'unknown', reason: 'notReadBack' } : notApplied(reason)
}

/** The reasons with which a record is settled as unknown after a complete read-back that did not find its mark. */
const readBackInVain: ReadonlySet<string> = new Set<UnknownReason>([
  'connectionLost',
  'timeout',
  'unreadableReply',
  'serverError',
  'otherRecord',
])

/**
 * Returns true if a record that was settled as unknown for this reason can no longer arrive, because a complete read-back did not find it.
 */
export const canNoLongerArrive = (reason: string | undefined): boolean =>
  reason !== undefined && readBackInVain.has(reason)

/** Returns true for 401 and 403, which are caused by the credentials and not by the record. */
export function isDenial(error: UpstreamError): boolean {
  return error.status === 401 || error.status === 403
}

/** Returns the error of a request whose credentials V3 denied before it accepted any record, with V3's message. */
export function toDenialError(denial: UpstreamError): AdapterError {
  const text = denial.entries[0]?.message ?? ''
  const message =
    text === ''
      ? `The service denied the credentials (${denial.status}). This copy was not applied. Send the same request again with valid credentials.`
      : text
  return new AdapterError(denial.status === 401 ? 'ADP_TOKEN' : 'ADP_FORBIDDEN', message)
}

export interface FollowUp {
  /** False if the client gets a single 200, whatever the outcomes of the records are (batch-wire 3). */
  readonly outcomesShown: boolean
  /** False if no client waits for the reply. Recovery then retries records that were not applied. */
  readonly clientWaits: boolean
  readonly receivedMs: number
  readonly nowMs: number
}

/**
 * Recovery retries a record for a day after its receipt. The pause between retries is a twentieth of the record's age, at least 5 s and at
 * most 10 min. The pause does not depend on the number of attempts, because an attempt that ended with its process says nothing about V3.
 * Pauses are short at first, because a record may wait for an older record that has its own pause.
 */
const SHORTEST_PAUSE_MS = 5_000
const SHARE_OF_AGE = 1 / 20
const LONGEST_PAUSE_MS = 600_000
const RETRY_FOR_MS = 86_400_000

/**
 * Returns how a record is settled: its state, its part of the reply, and whether and when it is retried. A record that was not applied
 * waits for the client's resend if the client is told to resend it; otherwise recovery retries the record. Recovery reads a record with an
 * unknown outcome back until its outcome is known or the retries end.
 */
export function settlementOf(
  position: number,
  outcome: PostOutcome,
  reply: PartReply,
  followUp: FollowUp,
): Settled {
  const { outcomesShown, clientWaits } = followUp
  const answer = encodeAnswer(reply)
  /** Settles a record that V3 did not judge. `clientKnows` is true if its client is told to resend the record. */
  const unjudged = (reason: string, clientKnows: boolean): Settled => {
    if (clientKnows) return { position, state: 'notApplied', answer, reason, retry: 'resend' }
    const retry = nextMs(followUp)
    if (retry !== undefined) return { position, state: 'parked', answer, reason, retry }
    return { position, state: 'notApplied', answer, reason, deadLetter: true }
  }
  switch (outcome.kind) {
    case 'accepted':
      return { position, state: 'confirmed', answer, mark: markOf(outcome.reply) }
    case 'refused': {
      const reason = reasonOf(outcome)
      // A denial does not end the record, because V3 may accept the record with other credentials.
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

export function markOf({
  ExternalID,
  RecordedOn,
}: {
  readonly ExternalID: string
  readonly RecordedOn?: string | null | undefined
}): ConfirmedMark {
  return { externalId: ExternalID, recordedMs: parseTime(RecordedOn) }
}

/** Matches error codes that may be stored. Any other text of V3 may name a learner, so only the client gets it. */
const CODE = /^[A-Z]{2,8}(?:_[A-Z0-9]{1,16}){1,4}$/

function reasonOf(outcome: Extract<PostOutcome, { kind: 'refused' }>): string {
  const code = toV2Failure(outcome, v2ErrorRules).errors[0]?.code
  return code !== undefined && CODE.test(code) ? code : `HTTP_${outcome.error.status}`
}

/** Returns the time, in milliseconds since the epoch, after which a record that was received at `receivedMs` is no longer retried. */
export function retryDeadlineMs(receivedMs: number): number {
  return receivedMs + RETRY_FOR_MS
}

function nextMs({ nowMs, receivedMs }: FollowUp): number | undefined {
  if (nowMs >= retryDeadlineMs(receivedMs)) return undefined
  const ageMs = nowMs - receivedMs
  const pauseMs = Math.max(SHORTEST_PAUSE_MS, ageMs * SHARE_OF_AGE)
  return nowMs + Math.min(pauseMs, LONGEST_PAUSE_MS)
}
