import type { Clock } from '../../clock.ts'
import type { Slicing } from '../../http/slices.ts'
import type { Partner } from '../../partners/partner.ts'
import type { RequestKind, Side, Stage, StageEntry } from '../../rollout/index.ts'
import type { BatchLimits } from '../../v2/index.ts'
import type { OwnRules } from '../diff/index.ts'
import type { AskSide } from './ask-sides.ts'
import { checkAnswers } from './check-answers.ts'
import { checkReadBack, checkVisible, type MarkCheckOptions, toFollowed } from './check-marks.ts'
import type { Check, OpenCheck } from './checks.ts'
import { type AcceptedMark, compareReply } from './compare-reply.ts'
import { findHiddenOutcome, type HiddenOutcomes } from './hidden-outcome.ts'
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
import type { ProcessorShare } from './processor-share.ts'
import { checksOf } from './sampling.ts'

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

/** What compares the exchanges that were drawn. */
export interface ComparisonEngine {
  /** `sinceMs`: when its client had the reply, by the clock. */
  offer(exchange: OfferedExchange, sinceMs: number): void
  wrote(partner: Partner, keys: readonly (string | undefined)[]): void
  throttled(partner: Partner): void
  close(): Promise<void>
}

export interface ComparisonEngineOptions {
  readonly limits: () => BatchLimits
  readonly slicing: Pick<Slicing, 'open'>
  readonly share: ProcessorShare
  readonly clock: Clock
  readonly ask: Readonly<Record<Side, AskSide>>
  readonly sides: PacedSides
  readonly openCheck: OpenCheck
  /** The partner's own rules that hold today. */
  readonly rulesOf: (partner: Partner) => OwnRules | undefined
  /** True for the query of a next link of the adapter. */
  readonly isContinued: (query: string) => boolean
  /** Called with each exchange whose turn it is, whatever can be compared of it. */
  readonly onExchange: (exchange: OfferedExchange) => void
  /** What V2 did with batches whose replies do not say. */
  readonly hidden: HiddenOutcomes
  /** Called with the number of batches of which is being read what V2 did with them; they are no checks. */
  readonly onFollowing: (batches: number) => void
  /** Called with an error of a comparison itself. */
  readonly onFailed: (cause: unknown) => void
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

/** The options of the comparison of one exchange. */
interface BeginOptions extends ComparisonEngineOptions {
  /** Counts batches of which is being read what V2 did with them. */
  readonly follows: (more: 1 | -1) => void
}

/** What a mark that is followed holds in memory. */
const MARK_BYTES = 1_500

/** Creates the engine: a queue for what needs no service, and a pool of checks that wait for one. */
export function createComparisonEngine(options: ComparisonEngineOptions): ComparisonEngine {
  const { openCheck, share, stop, sides } = options
  const ask = { v2: withinShare(options.ask.v2, options), v3: withinShare(options.ask.v3, options) }
  const latest = createLatestMarks()
  const jobs = createJobPool()
  let following = 0
  const follows = (more: 1 | -1): void => {
    following += more
    options.onFollowing(following)
  }
  const start: Start = (check, partner, bytes, job) => {
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
    begin: () => share.begin(),
    work: async (offer) => {
      try {
        options.onExchange(offer.exchange)
        await begin(offer, { ...options, ask, follows }, start)
      } catch (cause) {
        offer.first.skipped('failed')
        offer.second?.skipped('failed')
        options.onFailed(cause)
      }
    },
  })
  return {
    offer: (exchange, sinceMs) => {
      const places = latest.placesOf(exchange.client.partner.id, keysOf(exchange))
      const [first, second] = checksOf(exchange).map((check) => openCheck(exchange, check))
      if (first === undefined) return
      if (queue.offer({ exchange, places, sinceMs, first, second }, sizeOf(exchange))) return
      for (const check of [first, second]) check?.dropped(stop.signal.aborted ? 'closed' : 'full')
    },
    wrote: (partner, keys) => latest.wrote(partner.id, keys),
    throttled: (partner) => sides.of(partner, 'v2').silence(),
    close: async () => {
      stop.abort()
      for (const { first, second } of await queue.close())
        for (const check of [first, second]) check?.dropped('closed')
      await jobs.idle()
    },
  }
}

/** Asks a side when there is processor time for its answer. */
function withinShare(ask: AskSide, { share, clock }: ComparisonEngineOptions): AskSide {
  return async (read, timeMs) => {
    const deadlineMs = clock.nowMs() + timeMs
    await share.begin()
    return ask(read, deadlineMs - clock.nowMs())
  }
}

/** Runs the job of a check beside others, with the memory that it holds. */
type Start = (
  check: Pick<Check, 'skipped' | 'dropped'>,
  partner: Partner,
  bytes: number,
  job: () => Promise<void>,
) => void

async function begin(offer: Offer, options: BeginOptions, start: Start): Promise<void> {
  const { exchange } = offer
  if ('request' in exchange) await beginWrite(offer, exchange, options, start)
  else if ('records' in exchange) beginServed(offer, exchange, options, start)
  else beginRead(offer, exchange, options, start)
}

async function beginWrite(
  offer: Offer,
  exchange: OfferedWrite,
  options: BeginOptions,
  start: Start,
): Promise<void> {
  const { first, second, places } = offer
  const result = await compareReply(exchange, places, { ...options, open: () => options.slicing.open() })
  if (result.kind === 'skipped') {
    first.skipped(result.reason)
    second?.skipped(result.reason)
    return
  }
  first.compared(result.records)
  if (second !== undefined) follow(offer, exchange, result.accepted, second, options, start)
  if (result.hidden.length > 0) followHidden(exchange, result.hidden, options, start)
}

/** Nothing is compared: it counts as no check. */
const uncounted = { skipped: () => undefined, dropped: () => undefined }

function followHidden(
  { client, receivedMs, repliedMs }: OfferedWrite,
  records: readonly Omit<AcceptedMark, 'mark'>[],
  { ask, clock, stop, hidden, follows }: BeginOptions,
  start: Start,
): void {
  const { partner } = client
  if (!hidden.isWanted(partner.id)) return
  const marks = records.map(({ record, place }) => toFollowed(record, undefined, place))
  start(uncounted, partner, marks.length * MARK_BYTES, async () => {
    follows(1)
    try {
      const options = { ask: ask.v3, clock, stopped: stop.signal }
      const outcome = await findHiddenOutcome({ client, receivedMs, repliedMs }, marks, options)
      if (outcome !== undefined) hidden.found(partner.id, outcome)
    } finally {
      follows(-1)
    }
  })
}

function follow(
  offer: Offer,
  exchange: OfferedWrite,
  accepted: readonly AcceptedMark[],
  check: Check,
  options: BeginOptions,
  start: Start,
): void {
  const { partner } = exchange.client
  if (accepted.length === 0) {
    check.skipped('empty')
    return
  }
  start(check, partner, accepted.length * MARK_BYTES, () =>
    checkVisible(exchange, accepted, check, toMarkOptions(offer, partner, options)),
  )
}

function beginServed(offer: Offer, exchange: OfferedServedWrite, options: BeginOptions, start: Start): void {
  const { first, places } = offer
  const { partner } = exchange.client
  if (exchange.records.length === 0) {
    first.skipped('empty')
    return
  }
  start(first, partner, sizeOf(exchange), () =>
    checkReadBack(exchange, places, first, toMarkOptions(offer, partner, options)),
  )
}

function beginRead(
  { first }: Offer,
  exchange: OfferedRead,
  { ask, rulesOf, clock, stop, isContinued }: BeginOptions,
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
  { ask, rulesOf, clock, stop }: BeginOptions,
): MarkCheckOptions {
  return { ask, rules: rulesOf(partner), clock, sinceMs, stopped: stop.signal }
}

/** The keys of the records of a write, as far as they are known. */
export function keysOf(exchange: OfferedExchange): readonly (string | undefined)[] {
  if ('request' in exchange) return exchange.keys
  return 'records' in exchange ? exchange.records.map(({ key }) => key) : []
}
