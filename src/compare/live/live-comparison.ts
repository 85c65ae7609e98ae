import type { Clock } from '../../clock.ts'
import type { Partner } from '../../partners/partner.ts'
import { type StageEntry, stageTable } from '../../rollout/decide.ts'
import type { RequestKind, Side, Stage } from '../../rollout/stage.ts'
import type { BatchLimits } from '../../v2/index.ts'
import type { OwnRules } from '../diff/findings.ts'
import type { ProcessorShare } from '../processor-share.ts'
import type { AskSide } from './ask-sides.ts'
import { checkReadBack, checkVisible } from './check-marks.ts'
import { checkAnswers } from './compare-answers.ts'
import { type AcceptedMark, compareReply } from './compare-reply.ts'
import { type CheckKind, type CheckResult, type OfferedExchange, sizeOf } from './exchange.ts'
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
  if ('keys' in exchange) return ['reply', 'visible']
  return 'records' in exchange ? ['readBack'] : ['answers']
}

/** The keys of the records of a write, as far as they are known. */
export function keysOf(exchange: OfferedExchange): readonly (string | undefined)[] {
  if ('keys' in exchange) return exchange.keys
  return 'records' in exchange ? exchange.records.map(({ key }) => key) : []
}

/** How checks of live exchanges end: offered = compared + dropped + skipped, for each partner and check. */
export type CheckEnd = CheckResult | { readonly kind: 'dropped'; readonly reason: 'full' | 'closed' }

/** What is asked and noted of one exchange while it is compared. */
interface ExchangeEvents {
  /** Its turn has come: it holds no place of the queue any more. */
  readonly onBegun: () => void
  /** An error of the comparison itself: the check has no end. */
  readonly onFailure: (cause: unknown) => void
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

/** A check that waits for a side, beside others. */
interface Job {
  readonly check: CheckKind
  /** The memory that it holds. */
  readonly bytes: number
  readonly run: () => Promise<CheckResult>
}

/** Jobs of one partner, and the memory of all of them. */
const MAX_JOBS = 128
const MAX_BYTES = 16_777_216
/** What a mark that is followed holds in memory, of both sides, and each state of its history, measured. */
const [MARK_BYTES, STATE_BYTES] = [1_500, 1_040]

function bytesOf(marks: readonly AcceptedMark[]): number {
  return marks.reduce((sum, { mark }) => {
    const history = mark?.['AttendanceHistorys']
    return sum + MARK_BYTES + (Array.isArray(history) ? history.length * STATE_BYTES : 0)
  }, 0)
}

/** Creates the engine: what needs no service runs in turns, and what waits for one runs beside others. */
export function createComparisonEngine(options: ComparisonEngineOptions) {
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
  const runBeside = async (partner: string, { bytes, run }: Job): Promise<CheckEnd> => {
    const count = jobs.get(partner) ?? 0
    if (count >= MAX_JOBS || held + bytes > MAX_BYTES) return { kind: 'dropped', reason: 'full' }
    jobs.set(partner, count + 1)
    held += bytes
    try {
      return await run()
    } finally {
      jobs.set(partner, (jobs.get(partner) ?? 1) - 1)
      held -= bytes
    }
  }
  return {
    /** Notes a write that is not compared. */
    wrote: latest.wrote,
    /**
     * Compares an exchange after those that were given before, and resolves with the ends of its checks once nothing of it is under way. `sinceMs`:
     * when its client had the reply, by the clock.
     */
    compare: async (
      exchange: OfferedExchange,
      sinceMs: number,
      { onBegun, onFailure }: ExchangeEvents,
    ): Promise<ReadonlyMap<CheckKind, CheckEnd>> => {
      const { partner } = exchange.client
      const places = latest.placesOf(partner.id, keysOf(exchange))
      const ends = new Map<CheckKind, CheckEnd>()
      /** Ends what needs no service; the job is what is left. */
      const begin = async (): Promise<Job | undefined> => {
        if (stopped.aborted) {
          for (const check of checksOf(exchange)) ends.set(check, { kind: 'dropped', reason: 'closed' })
          return undefined
        }
        onBegun()
        const checking = { ask, rules: options.rulesOf(partner.id), clock, sinceMs, stopped }
        const bytes = sizeOf(exchange)
        if ('records' in exchange)
          return { check: 'readBack', bytes, run: () => checkReadBack(exchange, places, checking) }
        if (!('keys' in exchange))
          return { check: 'answers', bytes, run: () => checkAnswers(exchange, options.isContinued, checking) }
        const result = await compareReply(exchange, {
          ...{ partner, placesOf: () => places, limits: limits(), rules: checking.rules },
        })
        ends.set('reply', result)
        if (result.kind === 'skipped') {
          ends.set('visible', result)
          return undefined
        }
        const { accepted } = result
        const run = (): Promise<CheckResult> => checkVisible(exchange, accepted, checking)
        return { check: 'visible', bytes: bytesOf(accepted), run }
      }
      const job = await share.inTurn(begin)
      if (job !== undefined)
        await runBeside(partner.id, job).then((end) => void ends.set(job.check, end), onFailure)
      return ends
    },
  }
}
