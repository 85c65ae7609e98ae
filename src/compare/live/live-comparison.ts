import type { Clock } from '../../clock.ts'
import type { Partner } from '../../partners/partner.ts'
import { type RequestKind, type Side, type Stage, type StageEntry, stageTable } from '../../rollout/index.ts'
import type { BatchLimits } from '../../v2/index.ts'
import type { CheckKind } from '../compared-exchange.ts'
import type { OwnRules } from '../diff/index.ts'
import type { ProcessorShare } from '../processor-share.ts'
import type { AskSide } from './ask-sides.ts'
import { checkReadBack, checkVisible, findHiddenOutcome, type HiddenOutcome } from './check-marks.ts'
import { checkAnswers } from './compare-answers.ts'
import { compareReply } from './compare-reply.ts'
import { type CheckResult, type OfferedExchange, sizeOf } from './exchange.ts'
import { createLatestMarks } from './marks.ts'

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

/** What is asked and noted of one exchange while it is compared. */
interface ExchangeEvents {
  /** Its turn has come: it holds no place of the queue any more. */
  readonly onBegun: () => void
  /** Whether it is worth its calls what V2 did with a batch whose reply does not say. */
  readonly isHiddenWanted: () => boolean
  /** An error of the comparison itself: the check has no end. */
  readonly onFailure: (cause: unknown) => void
}

/** How the checks of an exchange ended, and what V2 did with a batch whose reply does not say. */
interface ExchangeEnd {
  readonly ends: ReadonlyMap<CheckKind, CheckEnd>
  readonly hidden: HiddenOutcome | undefined
}

/** What compares the exchanges that were drawn. */
interface ComparisonEngine {
  /**
   * Compares an exchange after those that were given before, and resolves once nothing of it is under way. `sinceMs`: when its client had the
   * reply, by the clock.
   */
  compare(exchange: OfferedExchange, sinceMs: number, events: ExchangeEvents): Promise<ExchangeEnd>
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
  /** The memory that it holds. */
  readonly bytes: number
  readonly run: () => Promise<void>
  /** There is no room for it. */
  readonly drop: () => void
}

/** Jobs of one partner, and the memory of all of them. */
const MAX_JOBS = 128
const MAX_BYTES = 16_777_216
/** What a mark that is followed holds in memory. */
const MARK_BYTES = 1_500

/** Creates the engine: what needs no service runs in turns, and what waits for one runs beside others. */
export function createComparisonEngine(options: ComparisonEngineOptions): ComparisonEngine {
  const { share, clock, stopped, limits } = options
  const latest = createLatestMarks()
  const jobs = new Map<string, number>()
  let held = 0
  /** Asks a side when there is processor time for its answer. */
  const withinShare =
    (ask: AskSide): AskSide =>
    async (read, timeMs) => {
      const deadlineMs = clock.nowMs() + timeMs
      await share.begin()
      return ask(read, deadlineMs - clock.nowMs())
    }
  const ask = { v2: withinShare(options.ask.v2), v3: withinShare(options.ask.v3) }
  const runBeside = async (partner: string, { bytes, run, drop }: Job): Promise<void> => {
    const count = jobs.get(partner) ?? 0
    if (count >= MAX_JOBS || held + bytes > MAX_BYTES) {
      drop()
      return
    }
    jobs.set(partner, count + 1)
    held += bytes
    try {
      await run()
    } finally {
      jobs.set(partner, (jobs.get(partner) ?? 1) - 1)
      held -= bytes
    }
  }
  return {
    wrote: (partner, keys) => latest.wrote(partner, keys),
    compare: async (exchange, sinceMs, { onBegun, isHiddenWanted, onFailure }) => {
      const { partner } = exchange.client
      const places = latest.placesOf(partner.id, keysOf(exchange))
      const ends = new Map<CheckKind, CheckEnd>()
      let hidden: HiddenOutcome | undefined
      const toJob = (check: CheckKind, bytes: number, run: () => Promise<CheckResult>): Job => ({
        bytes,
        run: async () => void ends.set(check, await run()),
        drop: () => ends.set(check, { kind: 'dropped', reason: 'full' }),
      })
      const begin = async (): Promise<readonly Job[]> => {
        if (stopped.aborted) {
          for (const check of checksOf(exchange)) ends.set(check, { kind: 'dropped', reason: 'closed' })
          return []
        }
        onBegun()
        const checking = { ask, rules: options.rulesOf(partner.id), clock, sinceMs, stopped }
        const bytes = sizeOf(exchange)
        if ('records' in exchange)
          return [toJob('readBack', bytes, () => checkReadBack(exchange, places, checking))]
        if (!('request' in exchange))
          return [toJob('answers', bytes, () => checkAnswers(exchange, options.isContinued, checking))]
        const result = await compareReply(exchange, {
          partner,
          placesOf: () => places,
          limits: limits(),
          rules: checking.rules,
        })
        ends.set('reply', result)
        if (result.kind === 'skipped') {
          ends.set('visible', result)
          return []
        }
        const { accepted } = result
        const visible = toJob('visible', accepted.length * MARK_BYTES, () =>
          checkVisible(exchange, accepted, checking),
        )
        if (result.hidden.length === 0 || !isHiddenWanted()) return [visible]
        const run = async (): Promise<void> => {
          hidden = await findHiddenOutcome(exchange, result.hidden, checking)
        }
        return [visible, { bytes: result.hidden.length * MARK_BYTES, run, drop: () => undefined }]
      }
      const begun = await share.inTurn(begin)
      await Promise.all(begun.map((job) => runBeside(partner.id, job).catch(onFailure)))
      return { ends, hidden }
    },
  }
}
