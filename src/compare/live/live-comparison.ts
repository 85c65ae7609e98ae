import type { Clock } from '../../clock.ts'
import type { Partner } from '../../partners/partner.ts'
import { type StageEntry, stageTable } from '../../rollout/decide.ts'
import type { RequestKind, Side, Stage } from '../../rollout/stage.ts'
import type { BatchLimits } from '../../v2/index.ts'
import type { OwnRules } from '../diff/findings.ts'
import type { ProcessorShare } from '../processor-share.ts'
import type { AskSide } from './ask-sides.ts'
import { checkReadBack, checkReply } from './check-marks.ts'
import { checkAnswers } from './compare-answers.ts'
import { openReply } from './compare-reply.ts'
import { type CheckKind, type CheckResult, type OfferedExchange, sizeOf } from './exchange.ts'
import { createLatestMarks } from './marks.ts'

export interface LiveComparison {
  /** Decides at random whether an exchange is compared, because clients could influence any other criterion. */
  isWanted(entry: Pick<StageEntry, 'side' | 'stage'>, kind: RequestKind, partner: Partner): boolean
  /** Accepts an exchange that `isWanted` selected. Never waits and never throws. */
  offer(exchange: OfferedExchange): void
  /**
   * Registers a write that was not selected, at a stage with comparisons. Checks of older marks with the same keys then ignore these marks.
   */
  onWrite(partner: Partner, stage: Stage, keys: () => readonly (string | undefined)[]): void
  /** Registers a 429 of V2 to a client, whether or not the exchange is compared. */
  onThrottled(partner: Partner, stage: Stage): void
}

export const isCompared = (
  { compare, checkV2Percent }: Pick<Partner, 'compare' | 'checkV2Percent'>,
  stage: Stage,
): boolean => stage !== 'legacy' && (stage === 'shadow' ? compare.percent > 0 : checkV2Percent > 0)

export function comparedPercent(
  { stage, side }: Pick<StageEntry, 'side' | 'stage'>,
  kind: RequestKind,
  partner: Partner,
): number {
  if (stageTable[stage][kind].compares === 'nothing') return 0
  if (stage === 'shadow') return side === 'v2' ? partner.compare.percent : 0
  // Marks can be read back from V2 only if V2 has an address.
  return side === 'v3' && partner.v2 !== undefined ? partner.checkV2Percent : 0
}

export function checkOf(exchange: OfferedExchange): CheckKind {
  if ('keys' in exchange) return 'reply'
  return 'records' in exchange ? 'readBack' : 'answers'
}

export function keysOf(exchange: OfferedExchange): readonly (string | undefined)[] {
  if ('keys' in exchange) return exchange.keys
  return 'records' in exchange ? exchange.records.map(({ key }) => key) : []
}

/**
 * The result of a check. For each partner and kind of check, the compared, dropped and skipped exchanges add up to the offered exchanges.
 */
export type CheckEnd =
  CheckResult | { readonly kind: 'dropped'; readonly reason: 'full' | 'closed' | 'failed' }

interface ComparisonEngineOptions {
  readonly limits: () => BatchLimits
  readonly share: ProcessorShare
  readonly clock: Clock
  readonly ask: Readonly<Record<Side, AskSide>>
  /** Returns the rules of a partner as of today, or `undefined` if the partner has no rules. */
  readonly rulesOf: (partner: string) => OwnRules | undefined
  readonly isContinued: (query: string) => boolean
  readonly stopped: AbortSignal
}

/** A check that waits for V2 or V3 while other checks run. */
interface Job {
  readonly kind: 'job'
  readonly bytes: number
  readonly run: () => Promise<CheckResult>
}

const MAX_JOBS = 128
const MAX_BYTES = 16_777_216

/** Creates the engine that runs checks. Exchanges are decoded one after another. Checks that wait for a service run concurrently. */
export function createComparisonEngine(options: ComparisonEngineOptions) {
  const { share, clock, stopped, limits } = options
  const latest = createLatestMarks()
  const jobs = new Map<string, number>()
  let heldBytes = 0
  const withinShare =
    (ask: AskSide): AskSide =>
    async (read, timeMs) => {
      const deadlineMs = clock.nowMs() + timeMs
      await share.begin()
      return ask(read, deadlineMs - clock.nowMs())
    }
  const ask = { v2: withinShare(options.ask.v2), v3: withinShare(options.ask.v3) }
  const runConcurrently = async (partner: string, { bytes, run }: Job): Promise<CheckEnd> => {
    const count = jobs.get(partner) ?? 0
    if (count >= MAX_JOBS || heldBytes + bytes > MAX_BYTES) return { kind: 'dropped', reason: 'full' }
    jobs.set(partner, count + 1)
    heldBytes += bytes
    try {
      return await run()
    } finally {
      jobs.set(partner, (jobs.get(partner) ?? 1) - 1)
      heldBytes -= bytes
    }
  }
  return {
    wrote: latest.recordWrites,
    /**
     * Compares an exchange once all earlier exchanges have been decoded. `sinceMs` is the time at which the client received the reply, in
     * milliseconds of `clock`. `onBegun` is called when the comparison begins, so that the caller can remove the exchange from its queue.
     */
    compare: async (exchange: OfferedExchange, sinceMs: number, onBegun: () => void): Promise<CheckEnd> => {
      const { partner } = exchange.client
      const places = latest.placesOf(partner.id, keysOf(exchange))
      /**
       * Does the work that needs no request to V2 or V3. Returns the rest of the check as a job, or the result if the check is complete.
       */
      const begin = async (): Promise<CheckEnd | Job> => {
        if (stopped.aborted) return { kind: 'dropped', reason: 'closed' }
        onBegun()
        const rules = options.rulesOf(partner.id)
        const checking = { ask, rules, clock, sinceMs, stopped }
        const job = (run: Job['run'], bytes = sizeOf(exchange)): Job => ({ kind: 'job', bytes, run })
        if ('records' in exchange) return job(() => checkReadBack(exchange, places, checking))
        if (!('keys' in exchange)) return job(() => checkAnswers(exchange, options.isContinued, checking))
        const opened = await openReply(exchange, { partner, placesOf: () => places, limits: limits(), rules })
        return opened.kind === 'open'
          ? job(() => checkReply(exchange, opened, checking), opened.bytes)
          : opened
      }
      const begun = await share.inTurn(begin)
      return begun.kind === 'job' ? runConcurrently(partner.id, begun) : begun
    },
  }
}
