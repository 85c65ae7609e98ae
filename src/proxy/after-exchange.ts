import type { OfferedExchange, ServedRecord } from '../compare/live/exchange.ts'
import { exchangeKinds, keptFieldsOf } from '../compare/wire-exchange.ts'
import { AdapterError, errorRules } from '../errors.ts'
import type { BatchTally } from '../observability/events.ts'
import type { TrialResult } from '../rollout/guards/trial-windows.ts'
import { isWriteKind, type Side } from '../rollout/stage.ts'
import { statusesOfParts } from '../writes/relayed-reply.ts'
import type { ProxyContext } from './context.ts'
import type { Exchange, ExchangeResult, Received } from './exchange.ts'

type AfterContext = Pick<
  ProxyContext,
  'accepted' | 'guards' | 'seen' | 'comparison' | 'recorder' | 'events' | 'slicing' | 'byteBudget' | 'nowMs'
>

/** Maximum sizes in bytes of the copies of replies to sampled reads and writes. */
const MAX_READ_BYTES = 1_048_576
const MAX_WRITE_BYTES = 8_388_608

/**
 * Opens an exchange, and decides what must not depend on its outcome: whether the guards count it, whether it is compared, and how much of
 * its reply is copied. `after` must be called once, when the exchange is over. `after` hands the result to the log, the advice, the
 * comparison, the recorder and the guards. Advice, comparison and guards ignore a client whose credentials no service has accepted, because
 * such a client can invent schools and records at no cost.
 */
export function openExchange(context: AfterContext, received: Received) {
  const { request, client, kind, side, entry } = received
  const queueKey = context.accepted.queueKey(client)
  const trial = queueKey.isAccepted() ? beginTrial(context, received) : undefined
  const isSampled =
    (isWriteKind(kind) || request.method === 'GET') &&
    context.comparison.isWanted({ stage: entry.stage, side }, kind, client.partner)
  const recorder = context.recorder?.(received)
  const sampleBytes = isWriteKind(kind) ? MAX_WRITE_BYTES : MAX_READ_BYTES
  const copyBytes = Math.max(recorder?.copyBytes ?? 0, isSampled ? sampleBytes : 0)
  const result: ExchangeResult = { parts: new Map() }
  const exchange: Exchange = { ...received, copyBytes, result }
  return {
    exchange,
    after: async (): Promise<void> => {
      const endedMs = context.nowMs()
      logWrite(context, exchange)
      if (queueKey.isAccepted()) {
        countWrite(context, exchange)
        compare(context, exchange, isSampled)
      }
      recorder?.record(result)
      if (trial === undefined) return
      const outcome = await trialOutcomeOf(context, exchange)
      if (outcome === undefined) trial.drop()
      else trial.end({ outcome, latencyMs: latencyOf(exchange, endedMs) })
    },
  }
}

/**
 * Counts the records of a write for the advice on the partner's next step. If V2 serves, the records of every write that was sent count. If
 * V3 serves, only the records that V3 confirmed or refused count. The records of a resend that the journal answers do not count again. At
 * `complete` nothing counts, because no step follows.
 */
function countWrite(
  { seen }: AfterContext,
  { kind, client, unit, entry, receivedMs, result }: Exchange,
): void {
  const { side, stage, revision } = entry
  if (!isWriteKind(kind) || stage === 'complete' || !('plan' in result)) return
  const scope = { partner: client.partner.id, stage, revision }
  const { plan, parts, outcome } = result
  if (plan === undefined) {
    seen.recordUnreadable(scope)
    return
  }
  const isServed =
    outcome?.kind === 'answered'
      ? !outcome.answered.replayed
      : outcome?.kind === 'relayed' && outcome.outcome.kind !== 'notSent'
  // A part with 409 does not count, because a newer mark superseded its record. A missing part is treated in the same way.
  const isSettled = (status = 409): boolean =>
    status !== 409 && ['good', 'refused'].includes(ofStatus(status))
  const records = () =>
    plan.records.map(({ key, record }, position) => ({
      key: key === '' ? undefined : key,
      code: record?.AttendanceCode.ExternalID,
      hasOutcome:
        isServed && (side === 'v2' || (record !== undefined && isSettled(parts.get(position)?.status))),
    }))
  seen.recordWrite({ ...scope, unit, side, receivedMs, records })
}

function logWrite({ events, nowMs }: AfterContext, { client, receivedMs, result }: Exchange): void {
  const { plan, outcome } = result
  if (outcome?.kind !== 'answered' || plan === undefined) return
  const { tally, queuedMs, replayed } = outcome.answered
  events.batchAnswered({
    ...tally,
    partner: client.partner.id,
    records: plan.records.length,
    changesets: plan.changesets,
    outcomesShown: plan.outcomesShown,
    unmappedFields: plan.unmappedFields,
    convertedFields: plan.convertedFields,
    replayed,
    durationMs: nowMs() - receivedMs,
    queuedMs,
  })
}

/** The approximate size of a record in a batch, including the head of its part. */
const RECORD_BYTES = 600

/**
 * Begins the trial that the partner's guards count for a write. Begins before the outcome is known, so that the outcome cannot bias the
 * sample.
 */
function beginTrial(
  { guards }: AfterContext,
  { request, kind, client, unit, entry, receivedMs }: Received,
): ReturnType<AfterContext['guards']['begin']> {
  if (!isWriteKind(kind)) return undefined
  const { side, stage, revision } = entry
  // Estimates the number of records from the length, the only measure that is known this early on both sides.
  const records = Math.round(Number(request.headers['content-length'] ?? 0) / RECORD_BYTES)
  return guards.begin({ partner: client.partner.id, unit, stage, revision, side, receivedMs, records })
}

/** Returns the duration of a write in milliseconds. On V3 it excludes the time in the queue of the rate limit. */
function latencyOf({ receivedMs, result: { outcome } }: Exchange, endedMs: number): number {
  if (outcome?.kind === 'relayed') return outcome.endedMs - receivedMs
  return endedMs - receivedMs - (outcome?.kind === 'answered' ? outcome.answered.queuedMs : 0)
}

type Outcome = TrialResult['outcome']

/** Returns the outcome of a write for the guards, or `undefined` if the guards do not count the write. */
async function trialOutcomeOf(context: AfterContext, exchange: Exchange): Promise<Outcome | undefined> {
  const { request, entry, result } = exchange
  const { plan, outcome, cause } = result
  if (outcome?.kind === 'relayed') return request.complete ? ofRelay(context, exchange, outcome) : undefined
  if (outcome?.kind === 'answered' && entry.side === 'v3') {
    const { tally, askedV3 } = outcome.answered
    // A reply that came from the journal without a call to V3 is not counted. A batch whose ids differ is not counted either, because V2
    // shows no outcomes of such a batch (batch-wire 3).
    return askedV3 && plan?.outcomesShown === true ? ofTally(tally) : undefined
  }
  return cause === undefined ? undefined : ofFailure(cause, entry.side)
}

/** Returns the worst outcome of the records of a write, by the same rules on both sides. */
function ofTally({ unknown, notApplied, refused }: Omit<BatchTally, 'accepted'>): Outcome {
  if (unknown > 0) return 'unknown'
  if (notApplied > 0) return 'serverError'
  return refused > 0 ? 'refused' : 'good'
}

async function ofRelay(
  { accepted, byteBudget, slicing }: AfterContext,
  { kind, client }: Exchange,
  { outcome }: Extract<ExchangeResult['outcome'], { kind: 'relayed' }>,
): Promise<Outcome | undefined> {
  if (outcome.kind === 'notSent') return ofFailure(outcome.error, 'v2')
  if (outcome.kind !== 'answered') return 'unknown'
  const whole = ofStatus(outcome.status)
  if (whole !== 'good' || kind === 'record') return whole
  const { fields = [], body } = outcome.reply ?? {}
  if (body === undefined) return undefined
  const held = byteBudget.open(accepted.queueKey(client))
  const reading = { slices: slicing.open(), onBytes: held.take }
  const statuses = await statusesOfParts({ fields, body }, reading).finally(held.release)
  if (statuses === undefined || statuses.length === 0) return undefined
  const parts = statuses.map(ofStatus)
  const countOf = (name: Outcome): number => parts.filter((part) => part === name).length
  const [unknown, notApplied, refused] = [countOf('unknown'), countOf('serverError'), countOf('refused')]
  return ofTally({ unknown, notApplied, refused })
}

/**
 * Returns the outcome for an error, or `undefined` if the client, the journal or overload caused the error, because such errors affect both
 * sides alike.
 */
function ofFailure(cause: unknown, side: Side): Outcome | undefined {
  if (!(cause instanceof AdapterError)) return isAbort(cause) ? undefined : 'serverError'
  const { code } = cause
  if (code === 'ADP_OUTCOME_UNKNOWN' || code === 'ADP_V2_OUTCOME_UNKNOWN') return 'unknown'
  if (code === 'ADP_INTERNAL') return 'serverError'
  // If V2 serves, this code means that an older record is still unsettled on V3, which says nothing about V2.
  if (code === 'ADP_BUDGET_EXCEEDED') return side === 'v3' ? 'serverError' : undefined
  if (code === 'ADP_UPSTREAM_REFUSED') return 'refused'
  if (code === 'ADP_SLOW_CLIENT') return undefined
  switch (errorRules[code].class) {
    case 'request':
    case 'record':
      return 'refused'
    case 'upstream':
      return 'serverError'
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

/**
 * Offers a sampled exchange to the comparison. For any other write, reports its keys, because the comparison may be following their marks.
 */
function compare({ comparison, nowMs }: AfterContext, exchange: Exchange, isSampled: boolean): void {
  const { kind, client, entry, result } = exchange
  if (isSampled) {
    const offered = toOffered(exchange, nowMs)
    if (offered !== undefined) comparison.offer(offered)
  } else if (isWriteKind(kind)) {
    comparison.onWrite(client.partner, entry.stage, () => keysOf(result))
  }
}

/** Returns the data of an exchange that the comparison needs, or `undefined` if the exchange has nothing to compare. */
function toOffered(exchange: Exchange, nowMs: () => number): OfferedExchange | undefined {
  const { request, client, entry, unit, receivedMs, target, side, result } = exchange
  const { plan, parts, settledMs, outcome } = result
  const kind = exchangeKinds.find((one) => one === exchange.kind)
  if (kind === undefined || outcome === undefined) return undefined
  const { stage, revision } = entry
  // The duration ends with the last part, because a correction may arrive as soon as the client has the reply.
  const durationMs = (settledMs ?? nowMs()) - receivedMs
  const common = {
    ...{ client, stage, revision, unit, receivedMs, durationMs },
    target: target.rawPath + target.query,
  }
  const toMessage = (body?: Buffer) => ({ fields: keptFieldsOf({ fields: request.rawHeaders }), body })
  if (!isWriteKind(kind)) {
    if (outcome.kind !== 'read') return undefined
    return { ...common, kind, request: toMessage(), served: side, reply: outcome.reply }
  }
  if (outcome.kind === 'relayed') {
    const { body, outcome: relayed } = outcome
    const reply = relayed.kind === 'answered' ? relayed.reply : undefined
    return reply && { ...common, kind, served: 'v2', request: toMessage(body), keys: keysOf(result), reply }
  }
  // Leaves out a replayed batch, which was already offered when it was first served.
  if (outcome.kind === 'read' || side === 'v2' || outcome.answered.replayed) return undefined
  const records = [...parts].flatMap(([position, part]): ServedRecord[] => {
    const planned = plan?.records[position]
    if (part.status >= 300 || planned?.record === undefined) return []
    return [{ record: planned.record, key: planned.key, part }]
  })
  return { ...common, kind, served: 'v3', records }
}

function keysOf({ plan }: ExchangeResult): readonly (string | undefined)[] {
  return plan?.records.map(({ key }) => (key === '' ? undefined : key)) ?? []
}
