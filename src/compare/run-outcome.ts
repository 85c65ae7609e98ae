import type { RunDocument } from './run-document.ts'

/** `ready`: every record is the same or equivalent. `differs`: at least one is not. `inconclusive`: the run cannot say. */
export type RunOutcome = 'ready' | 'differs' | 'inconclusive'

/** Why a run is inconclusive, or says less than it seems to. */
export type RunDoubt = 'incomplete' | 'nothingCompared' | 'tooFewCompared' | 'unknown' | 'expiredRules'

/** Exit status of `compare run`; 2 is wrong usage. */
export const outcomeStatus: Readonly<Record<RunOutcome, number>> = { ready: 0, differs: 1, inconclusive: 3 }

/** Share of the offered records, in percent, that has to be compared: below it a run is inconclusive. */
export const LEAST_COMPARED_PERCENT = 90

/** What of a document decides its outcome. */
export type RunFigures = Pick<RunDocument, 'complete' | 'offered' | 'compared' | 'verdicts' | 'ownRules'>

/** The outcome of a run. A difference counts whatever else is in doubt: more records would not take it back. */
export function outcomeOf(document: RunFigures): RunOutcome {
  const { differs, onlyV2, onlyV3 } = document.verdicts
  if (differs + onlyV2 + onlyV3 > 0) return 'differs'
  return doubtsOf(document).some((doubt) => doubt !== 'expiredRules') ? 'inconclusive' : 'ready'
}

/** What is in doubt about a run, the gravest first; empty where nothing is. */
export function doubtsOf({
  complete,
  offered,
  compared,
  verdicts,
  ownRules,
}: RunFigures): readonly RunDoubt[] {
  const doubts: RunDoubt[] = []
  if (compared === 0) doubts.push('nothingCompared')
  if (!complete) doubts.push('incomplete')
  if (compared > 0 && compared * 100 < offered * LEAST_COMPARED_PERCENT) doubts.push('tooFewCompared')
  if (verdicts.unknown > 0) doubts.push('unknown')
  // Fields of an expired rule count as differences: it changes the outcome by them alone.
  if (ownRules.some(({ expired, count }) => expired && count > 0)) doubts.push('expiredRules')
  return doubts
}
