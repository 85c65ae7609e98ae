import type { Clock } from '../../clock.ts'
import type { Partner } from '../../partners/partner.ts'
import { type RequestKind, type Side, type Stage, type StageEntry, stageTable } from '../../rollout/index.ts'
import type { BatchLimits } from '../../v2/index.ts'
import type { CheckKind } from '../compared-exchange.ts'
import type { OwnRules } from '../diff/index.ts'
import type { ProcessorShare } from '../processor-share.ts'
import type { AskSide } from './ask-sides.ts'
import {
  type CheckOptions,
  checkReadBack,
  checkVisible,
  findHiddenOutcome,
  type HiddenOutcome,
} from './check-marks.ts'
import { checkAnswers } from './compare-answers.ts'
import { compareReply } from './compare-reply.ts'
import { type CheckResult, type OfferedExchange, type OfferedWrite, sizeOf } from './exchange.ts'
import { createLatestMarks, type MarkPlace } from './latest-marks.ts'

/** Compares live exchanges off the way of their clients. */
export interface LiveComparison {
  /** Whether an exchange is to be compared: drawn for each, since clients choose all else that it could follow from. */
  isWanted(entry: Pick<StageEntry, 'side' | 'stage'>, kind: RequestKind, partner: Partner): boolean
  /** Takes an exchange that was wanted; never waits and never throws. */
  offer(exchange: OfferedExchange): void
  /** Notes a write at a stage whose exchanges are compared that was not wanted: older marks of its keys are no longer followed. */
  wrote(partner: Partner, stage: Stage, keys: () => readonly (string | undefined)[]): void
  /** V2 has answered 429 to a client at this stage, whether its exchange is compared or not. */
  throttled(partner: Partner, stage: Stage): void
  /** Ends all checks; bounded, since no call goes on. */
  close(): Promise<void>
}

/** True where exchanges of the partner are compared. */
export const isCompared = (
  { compare, checkV2Percent }: Pick<Partner, 'compare' | 'checkV2Percent'>,
  stage: Stage,
): boolean => stage !== 'legacy' && (stage === 'shadow' ? compare.percent > 0 : checkV2Percent > 0)

/** The share of the exchanges that is compared, percent. */
export function comparedPercent(
  { stage, side }: Pick<StageEntry, 'side' | 'stage'>,
  kind: RequestKind,
  partner: Partner,
): number {
  if (stageTable[stage][kind].compares === 'nothing') return 0
  if (stage === 'shadow') return side === 'v2' ? partner.compare.percent : 0
  // Without V2 there is nothing to read back.
  return side === 'v3' && partner.v2 !== undefined ? partner.checkV2Percent : 0
}

/** The checks that an offered exchange is for. */
export function checksOf(exchange: object): readonly CheckKind[] {
  if ('request' in exchange) return ['reply', 'visible']
  return 'records' in exchange ? ['readBack'] : ['answers']
}

/** The keys of the records of a write, as far as they are known. */
export function keysOf(exchange: OfferedExchange): readonly (string | undefined)[] {
  if ('request' in exchange) return exchange.keys
  return 'records' in exchange ? exchange.records.map(({ key }) => key) : []
}

/** How checks of live exchanges end: offered = compared + dropped + skipped, for each partner and check. */
export type CheckEnd = CheckResult | { readonly kind: 'dropped'; readonly reason: 'full' | 'closed' }

/** What is said of one exchange while it is compared. */
interface ExchangeEvents {
  /** Its turn has come: it holds no place of the queue any more. */
  readonly onBegun: () => void
  readonly onEnd: (check: CheckKind, end: CheckEnd) => void
  /** Whether it is worth its calls what V2 did with a batch whose reply does not say. */
  readonly isHiddenWanted: () => boolean
  readonly onHidden: (outcome: HiddenOutcome) => void
}

/** What compares the exchanges that were drawn. */
interface ComparisonEngine {
  /**
   * Compares an exchange after those that were given before, and resolves once nothing of it is under way. `sinceMs`: when its client had the
   * reply, by the clock. Rejects with an error of the comparison itself; its checks that have not ended do not end then.
   */
  compare(exchange: OfferedExchange, sinceMs: number, events: ExchangeEvents): Promise<void>
  /** Notes a write that is not compared. */
  wrote(partner: string, keys: readonly (string | undefined)[]): void
}

interface ComparisonEngineOptions {
  readonly limits: () => BatchLimits
  readonly share: ProcessorShare
  readonly clock: Clock
  readonly ask: Readonly<Record<Side, AskSide>>
  /** The partner's own rules that hold today. */
  readonly rulesOf: (partner: string) => OwnRules | undefined
  /** True for the query of a next link of the adapter. */
  readonly isContinued: (query: string) => boolean
  /** Ends calls and pauses. */
  readonly stopped: AbortSignal
}

/** What waits for a side, beside others. */
interface Job {
  /** Undefined: it is none of the exchange's checks. */
  readonly check: CheckKind | undefined
  /** The memory that it holds. */
  readonly bytes: number
  readonly run: () => Promise<CheckResult | undefined>
}

/** Jobs of one partner, and the memory of all of them. */
const MAX_JOBS = 128
const MAX_BYTES = 16_777_216
/** What a mark that is followed holds in memory. */
const MARK_BYTES = 1_500

/** Creates the engine: what needs no service runs in turns, and what waits for one runs beside others. */
export function createComparisonEngine(options: ComparisonEngineOptions): ComparisonEngine {
  const { share, clock, stopped } = options
  const latest = createLatestMarks()
  const jobs = new Map<string, number>()
  let held = 0
  let last: Promise<unknown> = Promise.resolve()
  /** Asks a side when there is processor time for its answer. */
  const withinShare =
    (ask: AskSide): AskSide =>
    async (read, timeMs) => {
      const deadlineMs = clock.nowMs() + timeMs
      await share.begin()
      return ask(read, deadlineMs - clock.nowMs())
    }
  const ask = { v2: withinShare(options.ask.v2), v3: withinShare(options.ask.v3) }
  const runBeside = async (
    partner: string,
    { check, bytes, run }: Job,
    onEnd: ExchangeEvents['onEnd'],
  ): Promise<void> => {
    const count = jobs.get(partner) ?? 0
    if (count >= MAX_JOBS || held + bytes > MAX_BYTES) {
      if (check !== undefined) onEnd(check, { kind: 'dropped', reason: 'full' })
      return
    }
    jobs.set(partner, count + 1)
    held += bytes
    try {
      const result = await run()
      if (check !== undefined && result !== undefined) onEnd(check, result)
    } finally {
      jobs.set(partner, (jobs.get(partner) ?? 1) - 1)
      held -= bytes
    }
  }
  return {
    wrote: (partner, keys) => latest.wrote(partner, keys),
    compare: async (exchange, sinceMs, events) => {
      const { partner } = exchange.client
      const places = latest.placesOf(partner.id, keysOf(exchange))
      const begin = async (): Promise<readonly Job[]> => {
        await share.begin()
        if (stopped.aborted) {
          for (const check of checksOf(exchange)) events.onEnd(check, { kind: 'dropped', reason: 'closed' })
          return []
        }
        events.onBegun()
        const checking = { ask, rules: options.rulesOf(partner.id), clock, sinceMs, stopped }
        if ('request' in exchange) return beginWrite(exchange, places, options.limits(), checking, events)
        const bytes = sizeOf(exchange)
        return 'records' in exchange
          ? [{ check: 'readBack', bytes, run: () => checkReadBack(exchange, places, checking) }]
          : [{ check: 'answers', bytes, run: () => checkAnswers(exchange, options.isContinued, checking) }]
      }
      const begun = last.then(begin)
      last = begun.catch(() => undefined)
      const running = (await begun).map((job) => runBeside(partner.id, job, events.onEnd))
      const failed = (await Promise.allSettled(running)).find(({ status }) => status === 'rejected')
      if (failed?.status === 'rejected') throw failed.reason
    },
  }
}

async function beginWrite(
  exchange: OfferedWrite,
  places: readonly MarkPlace[],
  limits: BatchLimits,
  checking: CheckOptions,
  { onEnd, onHidden, isHiddenWanted }: ExchangeEvents,
): Promise<readonly Job[]> {
  const result = await compareReply(exchange, places, { limits, rules: checking.rules })
  onEnd('reply', result)
  if (result.kind === 'skipped') {
    onEnd('visible', result)
    return []
  }
  const { accepted, hidden } = result
  const visible: Job = {
    check: 'visible',
    bytes: accepted.length * MARK_BYTES,
    run: () => checkVisible(exchange, accepted, checking),
  }
  if (hidden.length === 0 || !isHiddenWanted()) return [visible]
  const findHidden = async (): Promise<undefined> => {
    const outcome = await findHiddenOutcome(exchange, hidden, checking)
    if (outcome !== undefined) onHidden(outcome)
  }
  return [visible, { check: undefined, bytes: hidden.length * MARK_BYTES, run: findHidden }]
}
