import type { DifferenceKind } from '../verdict.ts'
import { leastOf, type PublishedCount, type PublishedRun } from './published-run.ts'

/** A class of differences, or of records that one side lacks, or that could not be compared. */
export interface Finding {
  /** As in `FieldDifference`; `(row)` for the record as a whole. */
  readonly path: string
  readonly kind: DifferenceKind | 'onlyV2' | 'onlyV3' | 'unknown'
  readonly v2Class: string
  readonly v3Class: string
  readonly count: PublishedCount
}

/** Everything of a run that asks for an explanation, the largest first. */
export function findingsOf({ differences, verdicts }: PublishedRun): readonly Finding[] {
  const rows: readonly Finding[] = [
    { path: '(row)', kind: 'onlyV2', v2Class: 'record', v3Class: 'missing', count: verdicts.onlyV2 },
    { path: '(row)', kind: 'onlyV3', v2Class: 'missing', v3Class: 'record', count: verdicts.onlyV3 },
    { path: '(row)', kind: 'unknown', v2Class: 'record', v3Class: 'record', count: verdicts.unknown },
  ]
  return [...differences, ...rows.filter(({ count }) => count !== 0)].sort(
    (one, other) => weight(other.count) - weight(one.count),
  )
}

/** Withheld counts stand behind all shown ones of the same least value. */
const weight = (count: PublishedCount): number =>
  typeof count === 'number' ? count : count === '<5' ? 4.5 : leastOf(count) - 0.5
