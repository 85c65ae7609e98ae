import type { IncomingMessage } from 'node:http'
import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib'

import { AdapterError, errorRules } from '../errors.ts'
import type { BatchTally } from '../observability/events.ts'
import {
  isWriteKind,
  type LiveGuards,
  type RequestKind,
  type Side,
  type StageEntry,
  type TrialResult,
} from '../rollout/index.ts'
import { decodeBatchReply } from '../v2/index.ts'
import type { Answered } from '../writes/index.ts'
import type { CapturedReply } from './captured-reply.ts'
import type { RelayOutcome } from './relayed-call.ts'

/** One write as the guards of its partner count it. */
export interface GuardTrial {
  /** V3 has answered it; `outcomesShown`: what became of each record is in the reply. */
  answered(answered: Pick<Answered, 'tally' | 'queuedMs' | 'askedV3'>, outcomesShown: boolean): void
  /** V2 has answered it, or not; `reply` has the body where the outcome of each record is to be known. */
  relayed(outcome: RelayOutcome, request: Pick<IncomingMessage, 'complete'>): void
  /** It was refused as a whole. */
  failed(cause: unknown): void
  /** Its end without any of these does not count. */
  drop(): void
}

export interface TrialSource {
  readonly guards: LiveGuards
  /** Milliseconds since the epoch. */
  readonly nowMs: () => number
}

export interface TrialRequest {
  readonly request: IncomingMessage
  readonly kind: RequestKind
  readonly partner: string
  readonly unit: string
  readonly entry: Pick<StageEntry, 'side' | 'stage' | 'revision'>
  readonly receivedMs: number
  /** Whether a service had accepted the credentials of its client before. */
  readonly isAccepted: boolean
}

/** About what a record of a batch takes with the head of its part. */
const RECORD_BYTES = 600

/** A larger reply of V2 is not read for the outcome of each record: that would take too long at once. */
export const TRIAL_REPLY_BYTES = 1_048_576

const uncounted: GuardTrial = {
  answered: () => undefined,
  relayed: () => undefined,
  failed: () => undefined,
  drop: () => undefined,
}

/**
 * Begins the trial of a write; other requests do not count. Nor do those of clients that no service has accepted: their schools are
 * invented for nothing. That is decided before the outcome, which would favour one side.
 */
export function beginTrial(
  { guards, nowMs }: TrialSource,
  { request, kind, partner, unit, entry, receivedMs, isAccepted }: TrialRequest,
): GuardTrial {
  if (!isWriteKind(kind) || !isAccepted) return uncounted
  const { side, stage, revision } = entry
  // The length is known at the beginning and on both sides; the number of records is not.
  const records = Math.round(Number(request.headers['content-length'] ?? 0) / RECORD_BYTES)
  const trial = guards.begin({ partner, unit, stage, revision, side, receivedMs, records })
  // Nothing is read for it then, least of all a reply.
  if (trial === undefined) return uncounted
  const end = (result: TrialResult | undefined, queuedMs = 0): void => {
    if (result === undefined) trial.drop()
    else trial.end({ latencyMs: nowMs() - receivedMs - queuedMs, ...result })
  }
  return {
    answered: ({ tally, queuedMs, askedV3 }, outcomesShown) =>
      // Neither what the journal alone has answered, nor what V2 does not show either (batch-wire 3).
      end(askedV3 && outcomesShown ? { outcome: ofTally(tally) } : undefined, queuedMs),
    relayed: (outcome, { complete }) => end(complete ? ofRelay(outcome, kind) : undefined),
    failed: (cause) => end(ofFailure(cause, side)),
    drop: () => trial.drop(),
  }
}

type Outcome = TrialResult['outcome']

/** `unknown`: it may have been applied. As V3's outcomes (docs/architecture.md), so that both sides are judged alike. */
function ofTally({ unknown, notApplied, refused }: Omit<BatchTally, 'accepted'>): Outcome {
  if (unknown > 0) return 'unknown'
  if (notApplied > 0) return 'serverError'
  return refused > 0 ? 'refused' : 'good'
}

function ofRelay(outcome: RelayOutcome, kind: RequestKind): TrialResult | undefined {
  if (outcome.kind === 'notSent') return ofFailure(outcome.error, 'v2')
  if (outcome.kind !== 'answered') return { outcome: 'unknown' }
  const whole = ofStatus(outcome.status)
  if (whole !== 'good' || kind === 'record') return { outcome: whole }
  const parts = outcome.reply === undefined ? undefined : outcomesOfParts(outcome.reply)
  if (parts === undefined) return undefined
  const countOf = (name: Outcome): number => parts.filter((part) => part === name).length
  const [unknown, notApplied, refused] = [countOf('unknown'), countOf('serverError'), countOf('refused')]
  return { outcome: ofTally({ unknown, notApplied, refused }) }
}

/**
 * The error that a request is refused for as a whole; undefined: neither side is the cause, but its client, the journal or a full adapter, which
 * are the same for both.
 */
function ofFailure(cause: unknown, side: Side): TrialResult | undefined {
  if (!(cause instanceof AdapterError)) return isAbort(cause) ? undefined : { outcome: 'serverError' }
  const { code } = cause
  if (code === 'ADP_OUTCOME_UNKNOWN' || code === 'ADP_V2_OUTCOME_UNKNOWN') return { outcome: 'unknown' }
  if (code === 'ADP_INTERNAL') return { outcome: 'serverError' }
  // On V2 it means that V3 has not said what became of an older record.
  if (code === 'ADP_BUDGET_EXCEEDED') return side === 'v3' ? { outcome: 'serverError' } : undefined
  if (code === 'ADP_UPSTREAM_REFUSED') return { outcome: 'refused' }
  if (code === 'ADP_SLOW_CLIENT') return undefined
  switch (errorRules[code].class) {
    case 'request':
    case 'record':
      return { outcome: 'refused' }
    case 'upstream':
      return { outcome: 'serverError' }
    case 'internal':
    case 'configuration':
      return undefined
  }
}

const isAbort = (cause: unknown): boolean => cause instanceof Error && cause.name === 'AbortError'

function ofStatus(status: number): Outcome {
  if (status === 503 || status === 429 || status === 408) return 'serverError'
  if (status >= 500) return 'unknown'
  return status >= 400 ? 'refused' : 'good'
}

/** The outcome of each record; undefined: the reply has no parts that can be read. */
function outcomesOfParts({ fields, body }: CapturedReply): readonly Outcome[] | undefined {
  const valueOf = (name: string): string | undefined => {
    const at = fields.findIndex((field, index) => index % 2 === 0 && field.toLowerCase() === name)
    return at === -1 ? undefined : fields[at + 1]
  }
  if (body === undefined || body.length > TRIAL_REPLY_BYTES) return undefined
  const plain = decompressed(body, valueOf('content-encoding') ?? 'identity')
  if (plain === undefined) return undefined
  try {
    const parts = decodeBatchReply(plain, valueOf('content-type'))
    return parts.length === 0 ? undefined : parts.map(({ status }) => ofStatus(status))
  } catch (cause) {
    if (cause instanceof AdapterError) return undefined
    throw cause
  }
}

/** Undefined for a coding that is not known, and for a body that is broken or too large. */
function decompressed(body: Buffer, coding: string): Buffer | undefined {
  const options = { maxOutputLength: TRIAL_REPLY_BYTES }
  try {
    switch (coding.trim().toLowerCase()) {
      case 'identity':
        return body
      case 'gzip':
        return gunzipSync(body, options)
      case 'deflate':
        return inflateSync(body, options)
      case 'br':
        return brotliDecompressSync(body, options)
      default:
        return undefined
    }
  } catch {
    // Its client reads it as it can; the guards do without.
    return undefined
  }
}
