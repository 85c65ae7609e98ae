import type { OfferedExchange, ServedRecord } from '../compare/live/exchange.ts'
import { type ExchangeKind, keptFieldsOf } from '../compare/wire-exchange.ts'
import { AdapterError, errorRules } from '../errors.ts'
import type { BatchTally } from '../observability/events.ts'
import type { TrialResult } from '../rollout/guards/trial-windows.ts'
import { isWriteKind, type RequestKind, type Side } from '../rollout/stage.ts'
import type { PartReply } from '../v2/index.ts'
import type { Plan } from '../writes/plan.ts'
import { type ReplyReading, statusesOfParts } from '../writes/relayed-reply.ts'
import type { ProxyContext } from './context.ts'
import type { ExchangeObserver, Received, Replied } from './exchange.ts'
import type { ForwardOutcome } from './forwarder.ts'

/**
 * Counts the records of a write for the advice on the partner's next step, once the write is over and only if a service has accepted the
 * client's credentials by then. On V2 only writes count that were sent, and on V3 only records that V3 confirmed or refused. A resend that
 * the journal knows has no such record, because it was counted when it was first sent. At `complete` no step follows, so nothing counts.
 */
export function countWrite(
  { seen }: Pick<ProxyContext, 'seen'>,
  { kind, client, unit, entry, receivedMs }: Received,
  isAccepted: () => boolean,
): Partial<ExchangeObserver> {
  const { side, stage, revision } = entry
  const partner = client.partner.id
  if (!isWriteKind(kind) || stage === 'complete') return {}
  let count = (): void => undefined
  let isServed = false
  const settled = new Set<number>()
  return {
    decoded: (plan) => {
      if (plan === undefined) {
        count = () => seen.recordUnreadable({ partner, stage, revision })
        return
      }
      const records = () =>
        plan.records.map(({ key, record }, position) => ({
          key: key === '' ? undefined : key,
          code: record?.AttendanceCode.ExternalID,
          hasOutcome: isServed && (side === 'v2' || (record !== undefined && settled.has(position))),
        }))
      count = () => seen.recordWrite({ partner, stage, revision, unit, side, receivedMs, records })
    },
    settled: (position, { status }) => {
      // A 409 means that a newer mark replaced the record.
      if (status !== 409 && ['good', 'refused'].includes(ofStatus(status))) settled.add(position)
    },
    replied: (reply) => {
      if (reply.kind === 'answered') isServed = !reply.answered.replayed
      else if (reply.kind === 'relayed') isServed = reply.outcome.kind !== 'notSent'
    },
    ended: () => {
      if (isAccepted()) count()
    },
  }
}

export function logWrite(
  { events, nowMs }: Pick<ProxyContext, 'events' | 'nowMs'>,
  partner: string,
): Partial<ExchangeObserver> {
  return {
    replied: (reply) => {
      if (reply.kind !== 'answered') return
      const { plan, receivedMs } = reply.planned
      const { tally, queuedMs, replayed } = reply.answered
      events.batchAnswered({
        ...tally,
        partner,
        records: plan.records.length,
        changesets: plan.changesets,
        outcomesShown: plan.outcomesShown,
        unmappedFields: plan.unmappedFields,
        convertedFields: plan.convertedFields,
        replayed,
        durationMs: nowMs() - receivedMs,
        queuedMs,
      })
    },
  }
}

/** The approximate size of a record in a batch, including the head of its part. */
const RECORD_BYTES = 600

/**
 * Starts the trial that the partner's guards count for a write. Writes of clients that no service has accepted do not count, because such a
 * client can invent schools at no cost. This is decided before the outcome is known, since deciding it afterwards would favour one side.
 */
export function beginTrial(
  { guards, nowMs }: Pick<ProxyContext, 'guards' | 'nowMs'>,
  { request, kind, client, unit, entry, receivedMs }: Received,
  isAccepted: boolean,
): Partial<ExchangeObserver> {
  if (!isWriteKind(kind) || !isAccepted) return {}
  const { side, stage, revision } = entry
  // The length is known at the beginning and on both sides. The number of records is not.
  const records = Math.round(Number(request.headers['content-length'] ?? 0) / RECORD_BYTES)
  const trial = guards.begin({ partner: client.partner.id, unit, stage, revision, side, receivedMs, records })
  // Without a trial, nothing needs to be read, least of all a reply.
  if (trial === undefined) return {}
  const end = (result: TrialResult | undefined, queuedMs = 0, endedMs = nowMs()): void => {
    if (result === undefined) trial.drop()
    else trial.end({ latencyMs: endedMs - receivedMs - queuedMs, ...result })
  }
  return {
    replied: async (reply) => {
      if (reply.kind === 'answered' && side === 'v3') {
        const { tally, queuedMs, askedV3 } = reply.answered
        // Replies from the journal alone do not count, nor do outcomes that V2 does not show either (batch-wire 3).
        const isShown = askedV3 && reply.planned.plan.outcomesShown
        end(isShown ? { outcome: ofTally(tally) } : undefined, queuedMs)
      } else if (reply.kind === 'relayed') {
        const endedMs = nowMs()
        const isWhole = request.complete
        end(isWhole ? await ofRelay(reply.outcome, kind, reply.reading) : undefined, 0, endedMs)
      }
    },
    // A trial that has already ended ignores this call.
    ended: (cause) => end(cause === undefined ? undefined : ofFailure(cause, side)),
  }
}

type Outcome = TrialResult['outcome']

/** Returns `unknown` if V3 may have applied the write, by the rules for V3's outcomes, so that both sides are judged alike. */
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

/** Returns `undefined` if the cause is the client, the journal or an overloaded adapter, which affect both sides alike. */
function ofFailure(cause: unknown, side: Side): TrialResult | undefined {
  if (!(cause instanceof AdapterError)) return isAbort(cause) ? undefined : { outcome: 'serverError' }
  const { code } = cause
  if (code === 'ADP_OUTCOME_UNKNOWN' || code === 'ADP_V2_OUTCOME_UNKNOWN') return { outcome: 'unknown' }
  if (code === 'ADP_INTERNAL') return { outcome: 'serverError' }
  // On V2 this code means that the outcome of an older record on V3 is not known yet.
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

/** Larger replies are not copied. */
const MAX_READ_BYTES = 1_048_576
const MAX_WRITE_BYTES = 8_388_608

type Comparison = Pick<ProxyContext, 'comparison' | 'nowMs'>

/**
 * Offers an exchange to the comparison once its client has the reply. For a write that is not offered, reports its keys instead, because a
 * comparison may be reading one of its marks. Ignores clients whose credentials no service has accepted.
 */
export function offerExchange(
  context: Comparison,
  exchange: Received,
  isAccepted: () => boolean,
): Partial<ExchangeObserver> {
  const { request, client, entry, side, kind } = exchange
  const { stage } = entry
  const isRead = kind === 'readFilter' || kind === 'readKey' || kind === 'registrations'
  if (!isRead && kind !== 'batch' && kind !== 'record') return {}
  const isOffered =
    (!isRead || request.method === 'GET') &&
    context.comparison.isWanted({ stage, side }, kind, client.partner)
  if (isOffered)
    return isRead
      ? offerRead(context, exchange, kind, isAccepted)
      : offerWrite(context, exchange, kind, isAccepted)
  return isRead ? {} : reportKeys(context, exchange, isAccepted)
}

function offerRead(
  { comparison, nowMs }: Comparison,
  exchange: Received,
  kind: 'readFilter' | 'readKey' | 'registrations',
  isAccepted: () => boolean,
): Partial<ExchangeObserver> {
  return {
    copyBytes: MAX_READ_BYTES,
    replied: (replied) => {
      if (replied.kind !== 'read' || !isAccepted()) return
      const { reply } = replied
      const served = exchange.side
      comparison.offer({ ...commonOf(exchange, kind, nowMs()), request: toMessage(exchange), served, reply })
    },
  }
}

function offerWrite(
  { comparison, nowMs }: Comparison,
  exchange: Received,
  kind: 'batch' | 'record',
  isAccepted: () => boolean,
): Partial<ExchangeObserver> {
  const parts = new Map<number, PartReply>()
  let settledMs: number | undefined
  const toOffered = (replied: Replied): OfferedExchange | undefined => {
    const common = commonOf(exchange, kind, settledMs ?? nowMs())
    if (replied.kind === 'relayed') {
      const { body, plan, outcome } = replied
      const reply = outcome.kind === 'answered' ? outcome.reply : undefined
      return (
        reply && { ...common, served: 'v2', request: toMessage(exchange, body), keys: keysOf(plan), reply }
      )
    }
    // A repeated batch was already offered the first time.
    if (replied.kind === 'read' || exchange.side === 'v2' || replied.answered.replayed) return undefined
    const { records } = replied.planned.plan
    const accepted = [...parts].flatMap(([position, part]): ServedRecord[] => {
      const planned = records[position]
      return planned?.record === undefined ? [] : [{ record: planned.record, key: planned.key, part }]
    })
    return { ...common, served: 'v3', records: accepted }
  }
  return {
    copyBytes: MAX_WRITE_BYTES,
    settled: (position, part) => {
      // The reply ends after the last part, and a correction may arrive as soon as the reply has ended.
      settledMs = nowMs()
      if (part.status < 300) parts.set(position, part)
    },
    replied: (replied) => {
      const offered = toOffered(replied)
      if (offered !== undefined && isAccepted()) comparison.offer(offered)
    },
  }
}

function reportKeys(
  { comparison }: Comparison,
  { client, entry }: Received,
  isAccepted: () => boolean,
): Partial<ExchangeObserver> {
  let plan: Plan | undefined
  let isNoted = false
  const note = (): void => {
    if (isNoted || !isAccepted()) return
    isNoted = true
    comparison.onWrite(client.partner, entry.stage, () => keysOf(plan))
  }
  return {
    // If possible, the keys are reported before a service has the write, because a comparison may read one of its marks at any moment.
    decoded: (decoded) => {
      plan = decoded
      note()
    },
    replied: note,
  }
}

function commonOf<Kind extends ExchangeKind>(exchange: Received, kind: Kind, repliedMs: number) {
  const { client, entry, unit, receivedMs, target } = exchange
  const { stage, revision } = entry
  const durationMs = repliedMs - receivedMs
  return {
    ...{ client, stage, revision, unit, kind, receivedMs, durationMs },
    target: target.rawPath + target.query,
  }
}

const toMessage = ({ request }: Received, body?: Buffer) => ({
  fields: keptFieldsOf({ fields: request.rawHeaders }),
  body,
})

/** Returns the key of each record of a write, or `undefined` in its place if the key is not known. */
function keysOf(plan: Plan | undefined): readonly (string | undefined)[] {
  return plan?.records.map(({ key }) => (key === '' ? undefined : key)) ?? []
}
