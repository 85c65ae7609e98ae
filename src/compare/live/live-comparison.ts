import type { Clock } from '../../clock.ts'
import type { Slices } from '../../http/slices.ts'
import type { Partner } from '../../partners/partner.ts'
import { type RequestKind, type Side, type Stage, type StageEntry, stageTable } from '../../rollout/index.ts'
import type { BatchLimits } from '../../v2/index.ts'
import type { OwnRules } from '../diff/index.ts'
import type { AskSide } from './ask-sides.ts'
import { checkAnswers } from './check-answers.ts'
import { checkReadBack, checkVisible, type MarkCheckOptions } from './check-marks.ts'
import type { Check, OpenCheck } from './checks.ts'
import { type AcceptedMark, compareReply } from './compare-reply.ts'
import { createJobPool } from './job-pool.ts'
import { createLatestMarks, type MarkPlace } from './latest-marks.ts'
import {
  type OfferedExchange,
  type OfferedRead,
  type OfferedServedWrite,
  type OfferedWrite,
  sizeOf,
} from './offered-exchange.ts'
import { createOfferQueue } from './offer-queue.ts'
import type { PacedSides } from './paced-side.ts'

/** Compares live exchanges off the way of their clients. */
export interface LiveComparison {
  /** Whether an exchange is to be compared: drawn for each, since clients choose all else that it could follow from. */
  isWanted(entry: Pick<StageEntry, 'side' | 'stage'>, kind: RequestKind, partner: Partner): boolean
  /** Takes an exchange that was wanted; never waits and never throws. */
  offer(exchange: OfferedExchange): void
  /** Notes a write at a stage whose exchanges are compared that was not wanted: older marks of its keys are no longer followed. */
  wrote(partner: Partner, stage: Stage, keys: () => readonly (string | undefined)[]): void
  /** Exchanges that wait, and checks under way. */
  waiting(): number
  /** Ends all checks; bounded, since no call goes on. */
  close(): Promise<void>
}

export interface LiveComparisonOptions {
  readonly limits: () => BatchLimits
  readonly open: () => Slices
  /** Runs work in a turn of its own. */
  readonly later: (act: () => void) => void
  readonly clock: Clock
  readonly ask: Readonly<Record<Side, AskSide>>
  readonly sides: PacedSides
  readonly openCheck: OpenCheck
  /** The partner's own rules that hold today. */
  readonly rulesOf: (partner: Partner) => OwnRules | undefined
  /** True for the query of a next link of the adapter. */
  readonly isContinued: (query: string) => boolean
  /** Shown each exchange whose turn it is, whatever can be compared of it. */
  readonly onExchange: (exchange: OfferedExchange) => void
  /** Called with an error of a comparison itself. */
  readonly onFailed: (cause: unknown) => void
  /** 0 up to 1, as `Math.random`. */
  readonly random: () => number
  /** Ends calls and pauses. */
  readonly stop: AbortController
}

/** An exchange with its checks. */
interface Offer {
  readonly exchange: OfferedExchange
  readonly places: readonly MarkPlace[]
  /** By the clock. */
  readonly sinceMs: number
  /** `reply` of a write that V2 served; else the only one. */
  readonly first: Check
  /** `visible`. */
  readonly second: Check | undefined
}

/** What a mark that is followed holds in memory. */
const MARK_BYTES = 1_500

/** Creates the comparison: a queue for what needs no service, and a pool of checks that wait for one. */
export function createLiveComparison(options: LiveComparisonOptions): LiveComparison {
  const { clock, openCheck, random, stop, sides } = options
  const latest = createLatestMarks()
  const jobs = createJobPool()
  const start = (check: Check, partner: Partner, bytes: number, job: () => Promise<void>): void => {
    const run = async (): Promise<void> => {
      try {
        await job()
      } catch (cause) {
        check.skipped(stop.signal.aborted ? 'stopped' : 'failed')
        if (!stop.signal.aborted) options.onFailed(cause)
      }
    }
    if (stop.signal.aborted) check.dropped('closed')
    else if (!jobs.run(partner.id, bytes, run)) check.dropped('full')
  }
  const queue = createOfferQueue<Offer>({
    clock,
    later: options.later,
    work: async (offer) => {
      try {
        options.onExchange(offer.exchange)
        await begin(offer, options, start)
      } catch (cause) {
        offer.first.skipped('failed')
        offer.second?.skipped('failed')
        options.onFailed(cause)
      }
    },
  })
  return {
    isWanted: ({ stage, side }, kind, partner) => {
      const percent = percentOf(stage, side, kind, partner)
      return percent > 0 && (percent >= 100 || random() * 100 < percent)
    },
    offer: (exchange) => {
      const isLegacyWrite = 'request' in exchange
      const { partner } = exchange.client
      const places = latest.wrote(partner.id, keysOf(exchange))
      if (exchange.served === 'v2' && exchange.reply?.status === 429) sides.of(partner, 'v2').silence()
      const first = openCheck(
        exchange,
        isLegacyWrite ? 'reply' : 'records' in exchange ? 'readBack' : 'answers',
      )
      const second = isLegacyWrite ? openCheck(exchange, 'visible') : undefined
      const offer = { exchange, places, sinceMs: clock.nowMs(), first, second }
      if (queue.offer(offer, sizeOf(exchange))) return
      for (const check of [first, second]) check?.dropped(stop.signal.aborted ? 'closed' : 'full')
    },
    wrote: (partner, stage, keys) => {
      if (stage === 'shadow' ? partner.compare.percent > 0 : partner.checkV2Percent > 0)
        latest.wrote(partner.id, keys())
    },
    waiting: () => queue.waiting() + jobs.count(),
    close: async () => {
      stop.abort()
      for (const { first, second } of await queue.close())
        for (const check of [first, second]) check?.dropped('closed')
      await jobs.idle()
    },
  }
}

/** Runs the job of a check beside others, with the memory that it holds. */
type Start = (check: Check, partner: Partner, bytes: number, job: () => Promise<void>) => void

async function begin(offer: Offer, options: LiveComparisonOptions, start: Start): Promise<void> {
  const { exchange } = offer
  if ('request' in exchange) await beginWrite(offer, exchange, options, start)
  else if ('records' in exchange) beginServed(offer, exchange, options, start)
  else beginRead(offer, exchange, options, start)
}

async function beginWrite(
  offer: Offer,
  exchange: OfferedWrite,
  options: LiveComparisonOptions,
  start: Start,
): Promise<void> {
  const { first, second, places } = offer
  const result = await compareReply(exchange, places, options)
  if (result.kind === 'skipped') {
    first.skipped(result.reason)
    second?.skipped(result.reason)
    return
  }
  first.compared(result.records)
  if (second !== undefined) follow(offer, exchange, result.accepted, second, options, start)
}

function follow(
  offer: Offer,
  exchange: OfferedWrite,
  accepted: readonly AcceptedMark[],
  check: Check,
  options: LiveComparisonOptions,
  start: Start,
): void {
  const { partner } = exchange.client
  if (accepted.length === 0) {
    check.skipped('empty')
    return
  }
  start(check, partner, accepted.length * MARK_BYTES, () =>
    checkVisible(exchange, accepted, check, toMarkOptions(offer, partner, 'v3', options)),
  )
}

function beginServed(
  offer: Offer,
  exchange: OfferedServedWrite,
  options: LiveComparisonOptions,
  start: Start,
): void {
  const { first, places } = offer
  const { partner } = exchange.client
  if (exchange.records.length === 0) {
    first.skipped('empty')
    return
  }
  start(first, partner, sizeOf(exchange), () =>
    checkReadBack(exchange, places, first, toMarkOptions(offer, partner, 'v2', options)),
  )
}

function beginRead(
  { first }: Offer,
  exchange: OfferedRead,
  { ask, rulesOf, clock, stop, isContinued }: LiveComparisonOptions,
  start: Start,
): void {
  const { partner } = exchange.client
  const own = rulesOf(partner)
  const rules = own === undefined ? {} : { rules: own }
  start(first, partner, sizeOf(exchange), () =>
    checkAnswers(exchange, first, { ask, rules, clock, stopped: stop.signal, isContinued }),
  )
}

function toMarkOptions(
  { sinceMs }: Offer,
  partner: Partner,
  side: Side,
  { ask, rulesOf, clock, stop }: LiveComparisonOptions,
): MarkCheckOptions {
  return { ask: ask[side], rules: rulesOf(partner), clock, sinceMs, stopped: stop.signal }
}

function keysOf(exchange: OfferedExchange): readonly (string | undefined)[] {
  if ('request' in exchange) return exchange.keys
  return 'records' in exchange ? exchange.records.map(({ key }) => key) : []
}

/** The share of the exchanges that is compared. */
function percentOf(stage: StageEntry['stage'], side: Side, kind: RequestKind, partner: Partner): number {
  const { compares } = stageTable[stage][kind]
  if (compares === 'nothing') return 0
  if (stage === 'shadow') return side === 'v2' ? partner.compare.percent : 0
  // Without V2 there is nothing to read back.
  return side === 'v3' && partner.v2 !== undefined ? partner.checkV2Percent : 0
}
