import quantile from '@stdlib/stats-base-dists-beta-quantile'

import {
  checkBits,
  type ComparisonFigures,
  type Counts,
  countsOf,
  type EvidenceThresholds,
  type KeptEvidence,
  MAX_PAIRS,
  type NeededCheck,
} from '../../rollout/index.ts'

/** The figures of a step by what is kept at the present stage and share; undefined: nothing is. */
export function toFigures(
  kept: KeptEvidence | undefined,
  check: NeededCheck,
  { limit, confidence, schoolShare }: Pick<EvidenceThresholds, 'limit' | 'confidence' | 'schoolShare'>,
): ComparisonFigures {
  const counts = kept?.counts ?? new Map<string, number>()
  const schools = (kept?.periods ?? []).map((period) => period.schools[checkBits[check]] ?? [])
  // A school has the cap in each period, so it has it in their sum.
  const countedPairs = sumOf(schools.map((pairs) => cappedSum(pairs, schoolShare)))
  // The differences of a school are not capped: they may be those of all.
  // One that names no learner and day counts as one of its own: it must not be lost.
  const unpaired = countsOf(counts, 'uncounted').filter(({ fields }) => fields[1] === 'differs')
  const differing = sumOf([
    ...(kept?.periods ?? []).map((period) => period.differing),
    ...unpaired.map(({ count }) => count),
  ])
  const codes = valuesOf(counts, 'code', check, 'compared')
  const errors = new Set(valuesOf(counts, 'error', check, 'compared'))
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
    codesNotCompared: valuesOf(counts, 'code', undefined, 'seen').filter((code) => !codes.includes(code)),
    traits: countsOf(counts, 'trait')
      .filter(({ fields }) => fields[0] === check)
      .map(({ fields }) => fields[1] ?? ''),
    errorsNotCompared: valuesOf(counts, 'error', check, 'seen').filter((code) => !errors.has(code)),
    full: kept?.periods.some(({ pairs }) => pairs >= MAX_PAIRS) ?? false,
    damaged: kept?.damaged ?? false,
  }
}

/** The share of the sample of one check that was compared: of its requests, and of the records of those. Others, such as reads, cost a client nothing. */
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

/** Codes in the second field that were compared or seen, in one check or in any. */
function valuesOf(
  counts: Counts,
  group: 'code' | 'error',
  check: NeededCheck | undefined,
  how: 'compared' | 'seen',
): readonly string[] {
  const found = countsOf(counts, group)
    .filter(({ fields }) => (check === undefined || fields[0] === check) && fields[2] === how)
    .map(({ fields }) => fields[1] ?? '')
  return [...new Set(found)].sort()
}

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, one) => sum + one, 0)

/**
 * The upper confidence bound of a share after `differing` of `trials` (Clopper and Pearson 1934, one-sided): the true share is above it with
 * a probability of at most 1 - `confidence`, for any true share. 1 without a trial.
 */
export function upperBound(differing: number, trials: number, confidence: number): number {
  if (differing >= trials) return 1
  return quantile(confidence, differing + 1, trials - differing)
}

/** The smallest number of trials with `differing` whose bound is under `limit`. */
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
 * How many pairs count when no school may make up more than `share` of those that count: the largest N with N = the sum over schools of
 * min(pairs, share × N). With fewer than 1 / `share` schools it is 0.
 */
export function cappedSum(pairs: readonly number[], share: number): number {
  const sorted = pairs.filter((count) => count > 0).sort((one, other) => other - one)
  let rest = sorted.reduce((sum, count) => sum + count, 0)
  if (share >= 1) return rest
  for (const [capped, largest] of sorted.entries()) {
    const free = 1 - share * capped
    if (free <= 0) return 0
    // With this many schools at their cap the others make up the rest.
    const total = rest / free
    if (largest <= share * total + EPSILON) return Math.floor(total + EPSILON)
    rest -= largest
  }
  return 0
}

/** Counts are whole, shares are not. */
const EPSILON = 1e-6
