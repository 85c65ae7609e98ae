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
import { cappedSum, neededTrials, upperBound } from './bounds.ts'

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
