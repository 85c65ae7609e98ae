import { totalOf } from './change-evidence.ts'
import type { CountedSides, Evidence, TrialCounts } from './evidence.ts'
import { type BadOutcome, badOutcomes } from './trial-windows.ts'

/** What the guards say about a partner: whether V3 does worse than V2 at the same time. */
export type GuardVerdict =
  { readonly verdict: 'ok' | 'inconclusive' } | { readonly verdict: 'alarm'; readonly figures: CountedSides }

/** The probability that the guards of a partner ever raise a false alarm. */
const ALPHA = 0.0001
/** Trials of each side below which the lack of an alarm says nothing. */
const MIN_TRIALS = 200

/** Judges the evidence about a partner; pure. */
export function judge(evidence: Evidence): GuardVerdict {
  const { episode, counted, recent } = evidence
  // The parts of all episodes add up to alpha.
  const needed = -Math.log(ALPHA) + Math.log(episode * (episode + 1))
  if (evidenceFor(evidence) >= needed) return { verdict: 'alarm', figures: recent }
  return { verdict: counted.v2 < MIN_TRIALS || counted.v3 < MIN_TRIALS ? 'inconclusive' : 'ok' }
}

/** Without the unit that contributed most: a single one takes no other back with it. Where V3 serves no other, it stands for itself. */
function evidenceFor({ logs, without, hasOthers }: Evidence): number {
  const total = totalOf(logs)
  return hasOthers ? Math.min(total, ...[...without.values()].map(totalOf)) : total
}

const words: Readonly<Record<BadOutcome, string>> = {
  unknown: 'of unknown outcome',
  serverError: 'not applied',
  refused: 'with refused records',
  slow: 'slow',
}

/** An alarm as a sentence for operators, with its figures. */
export function describeAlarm({ v3, v2 }: CountedSides): string {
  const kinds = badOutcomes.filter((outcome) => v3[outcome] > 0)
  const listed = kinds.map((outcome) => `${v3[outcome]} ${words[outcome]}`).join(', ')
  return `V3 does worse than V2 at the same time: ${badOf(v3)} of ${v3.trials} counted writes on V3 were bad (${listed}), ${badOf(v2)} of ${v2.trials} on V2.`
}

/** How many of the trials were bad. */
export function badOf(counts: TrialCounts): number {
  return badOutcomes.reduce((sum, outcome) => sum + counts[outcome], 0)
}
