import { AdapterError, errorRules } from '../errors.ts'
import type { BatchTally } from '../observability/events.ts'
import {
  isWriteKind,
  type LiveGuards,
  type RequestKind,
  type Side,
  type TrialResult,
} from '../rollout/index.ts'
import { type ReplyReading, statusesOfParts } from '../writes/index.ts'
import type { ExchangeObserver, Received } from './exchange.ts'
import type { ForwardOutcome } from './forwarder.ts'

/** About what a record of a batch takes with the head of its part. */
const RECORD_BYTES = 600

/**
 * Begins the trial of a write, as the guards of its partner count it; other requests do not count. Nor do those of clients that no service
 * has accepted: their schools are invented for nothing. That is decided before the outcome, which would favour one side.
 */
export function beginTrial(
  { guards, nowMs }: { readonly guards: LiveGuards; readonly nowMs: () => number },
  { request, kind, client, unit, entry, receivedMs }: Received,
  isAccepted: boolean,
): Partial<ExchangeObserver> {
  if (!isWriteKind(kind) || !isAccepted) return {}
  const { side, stage, revision } = entry
  // The length is known at the beginning and on both sides; the number of records is not.
  const records = Math.round(Number(request.headers['content-length'] ?? 0) / RECORD_BYTES)
  const trial = guards.begin({ partner: client.partner.id, unit, stage, revision, side, receivedMs, records })
  // Nothing is read for it then, least of all a reply.
  if (trial === undefined) return {}
  const end = (result: TrialResult | undefined, queuedMs = 0, endedMs = nowMs()): void => {
    if (result === undefined) trial.drop()
    else trial.end({ latencyMs: endedMs - receivedMs - queuedMs, ...result })
  }
  return {
    replied: async (reply) => {
      if (reply.kind === 'answered' && side === 'v3') {
        const { tally, queuedMs, askedV3 } = reply.answered
        // Neither what the journal alone has answered, nor what V2 does not show either (batch-wire 3).
        const isShown = askedV3 && reply.planned.plan.outcomesShown
        end(isShown ? { outcome: ofTally(tally) } : undefined, queuedMs)
      } else if (reply.kind === 'relayed') {
        const endedMs = nowMs()
        const isWhole = request.complete
        end(isWhole ? await ofRelay(reply.outcome, kind, reply.reading) : undefined, 0, endedMs)
      }
    },
    // A trial that has ended does not end again.
    ended: (cause) => end(cause === undefined ? undefined : ofFailure(cause, side)),
  }
}

type Outcome = TrialResult['outcome']

/** `unknown`: it may have been applied. As V3's outcomes (docs/architecture.md), so that both sides are judged alike. */
function ofTally({ unknown, notApplied, refused }: Omit<BatchTally, 'accepted'>): Outcome {
  if (unknown > 0) return 'unknown'
  if (notApplied > 0) return 'serverError'
  return refused > 0 ? 'refused' : 'good'
}

async function ofRelay(
  outcome: ForwardOutcome,
  kind: RequestKind,
  reading: ReplyReading,
): Promise<TrialResult | undefined> {
  if (outcome.kind === 'notSent') return ofFailure(outcome.error, 'v2')
  if (outcome.kind !== 'answered') return { outcome: 'unknown' }
  const whole = ofStatus(outcome.status)
  if (whole !== 'good' || kind === 'record') return { outcome: whole }
  const { fields = [], body } = outcome.reply ?? {}
  const statuses = body === undefined ? undefined : await statusesOfParts({ fields, body }, reading)
  if (statuses === undefined || statuses.length === 0) return undefined
  const parts = statuses.map(ofStatus)
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
