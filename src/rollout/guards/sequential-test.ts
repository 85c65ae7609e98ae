import * as z from 'zod'

import { AdapterError } from '../../errors.ts'
import type { Side } from '../stage.ts'
import { type BadOutcome, badOutcomes, type CountedTrial } from './trial-windows.ts'

// Tests whether V3 does worse than V2 at the same time, with one sequential test per partner (decision 016).

/** The maximum probability that the guards of a partner ever raise a false alarm. */
const ALPHA = 0.0001
/** Minimum number of trials on each side. With fewer trials, the absence of an alarm means nothing. */
const MIN_TRIALS = 200
/**
 * Above this ratio of the odds on V3 to the odds on V2, V3 counts as worse. The side whose schools send more faulty marks shows a small but
 * lasting difference, which a test against the ratio 1 would eventually find.
 */
const TOLERATED_ODDS = 3
/** The alternative hypotheses: the odds ratio of V3 to V2 is this many times `TOLERATED_ODDS`. */
const FACTORS = [3, 12, 50]

const VERSION = 2
const count = z.int().min(0)
const trials = z.strictObject({
  trials: count,
  unknown: count,
  serverError: count,
  refused: count,
  slow: count,
})
type TrialCounts = Readonly<z.output<typeof trials>>

export type CountedSides = Readonly<Record<Side, TrialCounts>>

/**
 * The evidence that V3 became worse at some time, as one logarithm per alternative. Empty before the first window. The evidence of an
 * alternative is a sum over all windows in which the change may have happened: the prior of the window × the product of the likelihood
 * ratios since that window. The priors of all possible windows add up to 1. So the evidence is a nonnegative supermartingale as long as V3
 * is not worse, and by Ville's inequality the probability that the evidence ever reaches 1/alpha is at most alpha. A product since the
 * first window would have the same property. But a year without a fault would make that product so small that finding a fault would take
 * another year.
 */
const logs = z.array(z.number()).readonly()
export type LogEvidence = z.output<typeof logs>

const schema = z.object({
  version: z.literal(VERSION),
  revision: count,
  /** The number of times that the evidence was started. Each restart adds 1, and an alarm then needs more evidence. */
  episode: z.int().min(1),
  counted: z.strictObject({ v2: count, v3: count }),
  windows: count,
  logs,
  /** The trials since the evidence was last in favour of V3. An alarm reports the numbers of these trials. */
  recent: z.strictObject({ v2: trials, v3: trials }),
})

/** The evidence of all instances about one partner since its stage or percentage changed. The evidence outlives restarts of the instances. */
export type GuardState = Readonly<z.output<typeof schema>>

const noTrials: TrialCounts = { trials: 0, unknown: 0, serverError: 0, refused: 0, slow: 0 }
export const noRecent: CountedSides = { v2: noTrials, v3: noTrials }

export const newGuardState: GuardState = {
  version: VERSION,
  revision: 0,
  episode: 1,
  counted: { v2: 0, v3: 0 },
  windows: 0,
  logs: [],
  recent: noRecent,
}

/** Returns the evidence for a revision. Begins new evidence at any other revision, even a lower one, which a damaged trail may lead to. */
export function atRevision(state: GuardState, revision: number): GuardState {
  if (revision === state.revision) return state
  return { ...newGuardState, revision, episode: state.episode + (state.windows > 0 ? 1 : 0) }
}

/** Returns the evidence with one more window of one instance. Windows of several instances are added one after the other. */
export function addWindow(state: GuardState, trials: readonly CountedTrial[]): GuardState {
  const onV3 = trials.filter(({ side }) => side === 'v3').length
  const known = {
    ...state,
    counted: { v3: state.counted.v3 + onV3, v2: state.counted.v2 + trials.length - onV3 },
    recent: addRecent(totalOf(state.logs) < 0 ? noRecent : state.recent, trials),
  }
  // Groups the trials by size class, because only writes of similar size are compared with each other.
  const strata = [...Map.groupBy(trials, ({ stratum }) => stratum).values()].map(toCounts)
  if (!strata.some(isInformative)) return known
  const windows = known.windows + 1
  return { ...known, windows, logs: advanced(known.logs, windows, ratiosOf(strata)) }
}

function addRecent(before: CountedSides, trials: readonly CountedTrial[]): CountedSides {
  const recent = { v2: { ...before.v2 }, v3: { ...before.v3 } }
  for (const { side, outcome } of trials) {
    recent[side].trials += 1
    if (outcome !== 'good') recent[side][outcome] += 1
  }
  return recent
}

interface Counts {
  readonly trials: number
  readonly bad: number
  readonly controlTrials: number
  readonly controlBad: number
}

function toCounts(stratum: readonly CountedTrial[]): Counts {
  const onV3 = stratum.filter(({ side }) => side === 'v3')
  const isBad = ({ outcome }: CountedTrial): boolean => outcome !== 'good'
  const bad = onV3.filter(isBad).length
  const controlBad = stratum.filter(isBad).length - bad
  return { trials: onV3.length, bad, controlTrials: stratum.length - onV3.length, controlBad }
}

const ratiosOf = (strata: readonly Counts[]): readonly number[] =>
  FACTORS.map((factor) =>
    strata.reduce((sum, counts) => sum + logOddsEvidence(counts, factor * TOLERATED_ODDS, TOLERATED_ODDS), 0),
  )

/** Returns true if the split of the bad trials can favour one side: both sides have trials, and some but not all trials are bad. */
function isInformative({ trials, bad, controlTrials, controlBad }: Counts): boolean {
  const allBad = bad + controlBad
  return trials > 0 && controlTrials > 0 && allBad > 0 && allBad < trials + controlTrials
}

/**
 * Returns the logarithm of the likelihood ratio of two odds ratios, given the total number of bad trials (Fisher's noncentral
 * hypergeometric distribution). How bad the window was for both sides together cancels out. The expectation of the ratio is at most 1 for
 * any odds up to `tolerated`, because the ratio rises with `bad`.
 */
export function logOddsEvidence(counts: Counts, odds: number, tolerated: number): number {
  if (!isInformative(counts)) return 0
  return (
    counts.bad * Math.log(odds / tolerated) - logNormalizer(counts, odds) + logNormalizer(counts, tolerated)
  )
}

/** Returns the logarithm of the sum of C(trials, x) C(controlTrials, allBad - x) odds^x, up to a factor independent of the odds. */
function logNormalizer({ trials, bad, controlTrials, controlBad }: Counts, odds: number): number {
  const allBad = bad + controlBad
  const lowest = Math.max(0, allBad - controlTrials)
  const highest = Math.min(trials, allBad)
  let term = lowest * Math.log(odds)
  let largest = term
  let sum = 1
  for (let x = lowest; x < highest; x++) {
    const next = ((trials - x) * (allBad - x)) / ((x + 1) * (controlTrials - allBad + x + 1))
    term += Math.log(next * odds)
    if (term > largest) {
      sum = sum * Math.exp(largest - term) + 1
      largest = term
    } else sum += Math.exp(term - largest)
  }
  return largest + Math.log(sum)
}

/** The sum of 1 / (n ln² n) from n = 2. */
const PRIOR_SUM = 2.10975

/** Returns the logarithm of the prior of window `nth`, counted from 1. The priors fall slowly enough to detect a late change. */
export function logPrior(nth: number): number {
  const n = nth + 1
  return -Math.log(PRIOR_SUM * n) - 2 * Math.log(Math.log(n))
}

/** Returns the evidence after window `nth`. `ratios` are the logarithms of the likelihood ratios of that window. */
export function advanced(evidence: LogEvidence, nth: number, ratios: readonly number[]): LogEvidence {
  const prior = logPrior(nth)
  return ratios.map((ratio, index) => logSum([evidence[index] ?? -Infinity, prior]) + ratio)
}

/** Returns the logarithm of the mean evidence over the alternatives. */
export function totalOf(evidence: LogEvidence): number {
  return evidence.length === 0 ? -Infinity : logSum(evidence) - Math.log(evidence.length)
}

function logSum(logs: readonly number[]): number {
  const largest = Math.max(...logs)
  if (largest === -Infinity) return largest
  return largest + Math.log(logs.reduce((sum, log) => sum + Math.exp(log - largest), 0))
}

/** The verdict of the guards. `figures` is `undefined` unless the evidence is against V3. */
export type GuardVerdict =
  | { readonly kind: 'ok' | 'inconclusive'; readonly figures?: CountedSides | undefined }
  | { readonly kind: 'alarm'; readonly figures: CountedSides }

export function judge({ episode, counted, recent, logs }: GuardState): GuardVerdict {
  // Each episode needs more evidence than the one before, so that the error probabilities of all episodes add up to `ALPHA`.
  const needed = -Math.log(ALPHA) + Math.log(episode * (episode + 1))
  const total = totalOf(logs)
  if (total >= needed) return { kind: 'alarm', figures: recent }
  const kind = counted.v2 < MIN_TRIALS || counted.v3 < MIN_TRIALS ? 'inconclusive' : 'ok'
  return { kind, figures: total >= 0 ? recent : undefined }
}

const words: Readonly<Record<BadOutcome, string>> = {
  unknown: 'of unknown outcome',
  serverError: 'not applied',
  refused: 'with refused records',
  slow: 'slow',
}

export function describeAlarm(figures: CountedSides): string {
  return `V3 does worse than V2 in the same period: ${describeSides(figures)}.`
}

export function describeGuards(state: GuardState): string {
  const { kind, figures } = judge(state)
  if (kind === 'alarm') return describeAlarm(figures)
  if (figures !== undefined) return `${describeSides(figures)}.`
  const { v2, v3 } = state.counted
  const counted = `The guard has counted ${v2.toLocaleString('en')} writes on V2 and ${v3.toLocaleString('en')} on V3`
  return kind === 'ok'
    ? `${counted}, and V3 does no worse than V2.`
    : `${counted}. It judges V3 from ${MIN_TRIALS} writes on each side.`
}

/** Formats figures such as `12 of 21 counted writes on V3 were bad (12 not applied), 0 of 21 on V2`. */
export function describeSides({ v3, v2 }: CountedSides): string {
  const kinds = badOutcomes.filter((outcome) => v3[outcome] > 0)
  const listed = kinds.map((outcome) => `${v3[outcome]} ${words[outcome]}`).join(', ')
  return `${badOf(v3)} of ${v3.trials} counted writes on V3 were bad (${listed}), ${badOf(v2)} of ${v2.trials} on V2`
}

export function badOf(counts: TrialCounts): number {
  return badOutcomes.reduce((sum, outcome) => sum + counts[outcome], 0)
}

/** Logarithms are stored as multiples of 1 / `PRECISION`. */
const PRECISION = 1_000

/** Formats the evidence as JSON of bounded size. Rounds the logarithms down, so that storing never increases the evidence. */
export function formatGuardState(state: GuardState): string {
  const rounded = state.logs.map((log) => Math.floor(log * PRECISION) / PRECISION)
  return JSON.stringify({ ...state, logs: rounded })
}

/** Parses stored evidence, or returns new evidence for `undefined`. Throws `ADP_JOURNAL_DAMAGED`, because evidence must not restart unnoticed. */
export function parseGuardState(text: string | undefined): GuardState {
  if (text === undefined) return newGuardState
  try {
    return schema.parse(JSON.parse(text))
  } catch (cause) {
    const message =
      'The stored evidence of the guards cannot be read, so the guards of this partner do nothing. Nothing was changed. ' +
      'Delete the row "guards <partner>" of the table rollout_evidence in the database of the journal. The guards then begin anew.'
    throw new AdapterError('ADP_JOURNAL_DAMAGED', message, { cause })
  }
}
