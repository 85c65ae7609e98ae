import jstat from 'jstat'

import type { ComparisonFigures, EvidenceThresholds, NeededCheck } from '../../rollout/advise.ts'
import { type Counts, countsOf } from '../../rollout/evidence/count-name.ts'
import { checkBits } from '../../rollout/evidence/evidence-key.ts'
import { MAX_PAIRS } from '../../rollout/evidence/evidence-store.ts'
import type { CountedEvidence, KeptEvidence } from '../../rollout/evidence/read-kept.ts'
import { roundCount } from '../report/format.ts'
import type { RunDocument } from '../run-document.ts'
import { type Counted, delayBounds, toDocument } from '../tally.ts'

export function toFigures(
  kept: KeptEvidence | undefined,
  check: NeededCheck,
  { limit, confidence, schoolShare }: Pick<EvidenceThresholds, 'limit' | 'confidence' | 'schoolShare'>,
): ComparisonFigures {
  const counts = kept?.counts ?? new Map<string, number>()
  const schools = (kept?.periods ?? []).map((period) => period.schools[checkBits[check]] ?? [])
  // The cap applies to each period separately. A school with at most `schoolShare` of each period has at most that share of the total.
  const countedPairs = sumOf(schools.map((pairs) => cappedSum(pairs, schoolShare)))
  // Differences are not capped per school, since a difference at one school may affect all schools. `periods` does not contain differences
  // without a learner or a day, nor differences of earlier periods, so these differences are added here.
  const unpaired = countsOf(counts, 'uncounted').filter(({ fields }) => fields[1] === 'differs')
  const differing = sumOf([
    ...(kept?.periods ?? []).map((period) => period.differing),
    ...unpaired.map(({ count }) => count),
  ])
  const codes = codesOf(counts, check, 'compared')
  const codesNotCompared = codesOf(counts, undefined, 'seen').filter((code) => !codes.includes(code))
  return {
    check,
    ...shareOf(counts, check),
    pairs: sumOf(schools.map(sumOf)),
    countedPairs,
    schools: Math.max(0, ...schools.map((pairs) => pairs.length)),
    differing,
    bound: upperBound(differing, countedPairs, confidence),
    neededPairs: neededTrials(differing, limit, confidence),
    days: countsOf(counts, 'schoolDay').filter(({ fields }) => fields[1] === check).length,
    codes,
    codesNotCompared,
    codesUnchecked: codesOf(counts, check, 'unchecked').filter(
      (code) => !codes.includes(code) && !codesNotCompared.includes(code),
    ),
    traits: countsOf(counts, 'trait')
      .filter(({ fields }) => fields[0] === check)
      .map(({ fields }) => fields[1] ?? ''),
    unchecked: sumOf(countsOf(counts, 'unchecked').map(({ count }) => count)),
    full: kept?.periods.some(({ pairs }) => pairs >= MAX_PAIRS) ?? false,
    damaged: kept?.damaged ?? false,
  }
}

/**
 * Returns the number of sampled requests of one check, and `comparedShare`: the fraction of these requests that were compared, multiplied
 * by the fraction of the records that got a verdict other than `unknown`. Other checks do not count, because clients could raise the result
 * with cheap reads.
 */
function shareOf(counts: Counts, check: NeededCheck): Pick<ComparisonFigures, 'sampled' | 'comparedShare'> {
  let [sampled, compared, records, judged] = [0, 0, 0, 0]
  for (const { fields, count } of countsOf(counts, 'exchange')) {
    if (fields[1] !== check) continue
    sampled += count
    if (fields[2] === 'compared') compared += count
  }
  for (const { fields, count } of countsOf(counts, 'verdict')) {
    if (fields[1] !== check) continue
    records += count
    if (fields[2] !== 'unknown') judged += count
  }
  return {
    sampled,
    comparedShare: sampled === 0 || records === 0 ? 0 : (compared / sampled) * (judged / records),
  }
}

function codesOf(
  counts: Counts,
  check: NeededCheck | undefined,
  how: 'compared' | 'seen' | 'unchecked',
): readonly string[] {
  const found = countsOf(counts, 'code')
    .filter(({ fields }) => (check === undefined || fields[0] === check) && fields[2] === how)
    .map(({ fields }) => fields[1] ?? '')
  return [...new Set(found)].sort()
}

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, one) => sum + one, 0)

/**
 * Returns the one-sided upper confidence bound of a proportion if `differing` of `trials` trials differ (Clopper and Pearson 1934). The
 * true proportion exceeds the bound with a probability of at most 1 - `confidence`. The bound is 1 if no trial agreed.
 */
export function upperBound(differing: number, trials: number, confidence: number): number {
  if (differing >= trials) return 1
  return jstat.beta.inv(confidence, differing + 1, trials - differing)
}

/** Returns the smallest number of trials for which the upper bound is below `limit` when `differing` of them differ. */
export function neededTrials(differing: number, limit: number, confidence: number): number {
  let high = Math.max(1, 2 * differing)
  while (upperBound(differing, high, confidence) >= limit) high *= 2
  let low = differing
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (upperBound(differing, middle, confidence) >= limit) low = middle
    else high = middle
  }
  return high
}

/**
 * Returns the number of learner-days that count if no school may contribute more than `share` of the total: the largest N that
 * equals the sum over all schools of min(pairs, share × N). With fewer than 1 / `share` schools the result is 0.
 */
export function cappedSum(pairs: readonly number[], share: number): number {
  const sorted = pairs.filter((count) => count > 0).sort((one, other) => other - one)
  let rest = sorted.reduce((sum, count) => sum + count, 0)
  if (share >= 1) return rest
  for (const [capped, largest] of sorted.entries()) {
    const free = 1 - share * capped
    if (free <= 0) return 0
    // The `capped` largest schools contribute the cap. The other schools contribute `rest` pairs.
    const total = rest / free
    if (largest <= share * total + EPSILON) return Math.floor(total + EPSILON)
    rest -= largest
  }
  return 0
}

const EPSILON = 1e-6

export function latestRuns(counted: readonly CountedEvidence[]): readonly RunDocument[] {
  const compared = counted.filter(({ counts }) => countsOf(counts, 'exchange').length > 0)
  const newestFirst = compared.toSorted((one, other) => other.lastMs - one.lastMs)
  return [...Map.groupBy(newestFirst, ({ scope }) => scope.partner).values()].flatMap(([latest]) =>
    latest === undefined ? [] : [toRunDocument(latest)],
  )
}

/** The records compared on one day, rounded to multiples of 5 as in reports. */
export interface TrendDay {
  readonly day: string
  readonly compared: number
  readonly differing: number
}

export function toTrend(counted: readonly CountedEvidence[]): readonly TrendDay[] {
  const days = new Map<string, { compared: number; differing: number }>()
  for (const {
    fields: [day = '', verdict = ''],
    count,
  } of counted.flatMap(({ counts }) => countsOf(counts, 'comparedOn'))) {
    if (verdict === 'unknown') continue
    const own = days.get(day) ?? { compared: 0, differing: 0 }
    own.compared += count
    if (verdict !== 'same' && verdict !== 'equivalent') own.differing += count
    days.set(day, own)
  }
  return [...days]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([day, { compared, differing }]) => ({
      day,
      compared: roundCount(compared),
      differing: Math.min(roundCount(compared), roundCount(differing)),
    }))
}

export const liveRunOf = ({ partner, stage, revision }: CountedEvidence['scope']): string =>
  `live-${partner}-${stage}-${revision}`

/** The names of counts in the evidence, each with the section of the tally that gets these counts. */
const sections = [
  ['difference', 'difference'],
  ['rule', 'equivalence'],
  ['codeClass', 'codeClass'],
  ['comparedOn', 'day'],
  ['comparedAt', 'hour'],
] as const

/** Converts evidence to a run document. `skipped` counts missed requests and unchecked records. A request and its resends count once. */
function toRunDocument({ scope, counts, sinceMs, lastMs }: CountedEvidence): RunDocument {
  const { partner } = scope
  const verdicts = countsOf(counts, 'verdict').map(
    ({ fields: [kind = '', check = '', verdict = ''], count }): Counted => [
      'verdict',
      [`${kind}/${check}`, verdict],
      count,
    ],
  )
  const missed = [
    ...countsOf(counts, 'exchange').filter(({ fields }) => fields[2] === 'missed'),
    ...countsOf(counts, 'unchecked'),
  ].map(({ count }): Counted => ['skipped', [], count])
  const others = sections.flatMap(([group, section]) =>
    countsOf(counts, group).map(({ fields, count }): Counted => [section, fields, count]),
  )
  const delays = new Map(countsOf(counts, 'delay').map(({ fields, count }) => [fields[0], count]))
  const allDelays = delayBounds.map((upToMs): Counted => {
    const upTo = String(upToMs)
    return ['delay', [upTo], delays.get(upTo) ?? 0]
  })
  return toDocument(
    {
      ...{ run: liveRunOf(scope), kind: 'live', partner, complete: true },
      startedAt: new Date(sinceMs).toISOString(),
      endedAt: new Date(lastMs).toISOString(),
      noise: false,
    },
    [...verdicts, ...missed, ...others, ...(delays.size === 0 ? [] : allDelays)],
  )
}
