import type { Advice } from '../../rollout/advise.ts'
import type { ComparisonFigures } from '../../rollout/advise-comparison.ts'
import type { GivenAdvice } from './give-advice.ts'
import { formatCounted } from '../text-table.ts'
import { describe } from './rollout-text.ts'

/** Advice as text: the verdict, what is missing, and with `figures` what it was judged by. */
export function formatAdvice({ to, verdict, missing, figures }: GivenAdvice, withFigures: boolean): string {
  if (to === undefined)
    return verdict === 'ready' ? 'advice: this is the last stage' : ['advice: none', ...missing].join('\n')
  const step = describe({ ...to, always: [], never: [] })
  return [
    `advice on ${step}: ${verdict}`,
    ...missing.map((sentence) => `  - ${sentence}`),
    ...(withFigures && figures !== undefined ? ['', ...linesOf(figures)] : []),
  ].join('\n')
}

function linesOf(figures: Advice['figures']): readonly string[] {
  const { daysAtStage, records, batches, schools, codes, peakRecordsPerSecond, allowedRecordsPerSecond } =
    figures
  const allowed =
    allowedRecordsPerSecond === undefined ? 'no limit' : `${round(allowedRecordsPerSecond)} allowed`
  return [
    `at this stage: ${formatCounted(daysAtStage, 'day')}`,
    `seen: about ${formatCounted(records, 'different record')} in ${formatCounted(batches, 'batch', 'batches')} of about ${formatCounted(schools, 'school')}, with ${formatCounted(codes, 'attendance code')}`,
    `peak: ${round(peakRecordsPerSecond)} records per second (${allowed})`,
    ...(figures.comparison === undefined ? [] : linesOfComparison(figures.comparison)),
  ]
}

function linesOfComparison(figures: ComparisonFigures): readonly string[] {
  const { sampled, comparedShare, pairs, countedPairs, differing, bound, neededPairs, days, codes } = figures
  return [
    `compared: ${percent(comparedShare)} of a sample of ${formatCounted(sampled, 'request')}, on ${formatCounted(days, 'day')}, with ${formatCounted(codes.length, 'attendance code')}`,
    `learners and days: ${pairs}, of which ${countedPairs} count (${neededPairs} needed); ${differing} differ, so at most ${percent(bound)} of all do`,
  ]
}

const percent = (share: number): string => `${round(share * 100)} %`
const round = (rate: number): number => Math.round(rate * 100) / 100
