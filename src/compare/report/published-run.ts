import type { RunDoubt, RunOutcome } from '../run-outcome.ts'
import type { CountedDifference, CountedEquivalence, RunDocument, AppliedRule } from '../run-document.ts'
import type { Verdict } from '../verdict.ts'

/** A count as a report prints it: a number, `<5` (from 1 to 4), or `>=n` where the exact count would reveal a small one. */
export type PublishedCount = number | '<5' | `>=${number}`

type Published<Counted> = Omit<Counted, 'count'> & { readonly count: PublishedCount }

export type PublishedVerdicts = Readonly<Record<Verdict, PublishedCount>>

export interface PublishedGroup {
  readonly name: string
  readonly verdicts: PublishedVerdicts
}

type Withheld =
  | 'offered'
  | 'compared'
  | 'dropped'
  | 'skipped'
  | 'verdicts'
  | 'differences'
  | 'equivalences'
  | 'noise'
  | 'ownRules'
  | 'kinds'
  | 'codeClasses'
  | 'days'
  | 'delays'
  | 'askedAgain'

/** A run as all reports print it: small counts withheld unless `exact`, texts without control characters. */
export interface PublishedRun extends Omit<RunDocument, Withheld> {
  /** Marks the document as a report, which no report is made from. */
  readonly report: 'markbridge-compare'
  readonly exact: boolean
  readonly outcome: RunOutcome
  readonly doubts: readonly RunDoubt[]
  readonly offered: PublishedCount
  readonly compared: PublishedCount
  readonly dropped: PublishedCount
  readonly skipped: PublishedCount
  readonly verdicts: PublishedVerdicts
  readonly differences: readonly Published<CountedDifference>[]
  readonly equivalences: readonly Published<CountedEquivalence>[]
  readonly noise: {
    readonly measured: boolean
    readonly records: PublishedCount
    readonly differences: readonly Published<RunDocument['noise']['differences'][number]>[]
  }
  readonly ownRules: readonly Published<AppliedRule>[]
  readonly kinds: readonly PublishedGroup[]
  readonly codeClasses: readonly PublishedGroup[]
  readonly days: readonly PublishedGroup[]
  readonly delays: readonly { readonly upToMs: number | null; readonly count: PublishedCount }[]
  readonly askedAgain: PublishedCount
}

export type PublishedDifference = PublishedRun['differences'][number]

/** The least that a printed count can be. */
export function leastOf(count: PublishedCount): number {
  if (typeof count === 'number') return count
  return count === '<5' ? 1 : Number(count.slice(2))
}

/** The sum of printed counts: exact where all are, else a lower bound. */
export function addCounts(counts: readonly PublishedCount[]): PublishedCount {
  const known = counts.filter((count) => count !== 0)
  if (known.length === 1) return known[0] ?? 0
  const least = known.reduce<number>((sum, count) => sum + leastOf(count), 0)
  return known.every((count) => typeof count === 'number') ? least : `>=${least}`
}
