import { compareMark, findMarkDifferences } from './compare-mark.ts'
import { diffRows, type RecordDiff, type RowKind } from './diff-rows.ts'
import type { DiffOptions } from './options.ts'
import { idOf, memberOf, type Members } from './values.ts'

const pairKeyOf = (mark: Members): string | undefined => {
  const learner = idOf(memberOf(mark, 'Learner'))
  const event = idOf(memberOf(mark, 'AttendableEvent'))
  // Ids have 64 characters at most, so that this is the id of no mark by its length or its line end.
  return learner === undefined || event === undefined ? undefined : `${learner}\n${event}`
}

/** service.md 2.10: a mark has an id; before it has one, learner and session name it. */
const marks: RowKind = {
  keyOf: (mark) => idOf(memberOf(mark, 'ExternalID')) ?? pairKeyOf(mark),
  otherKeyOf: pairKeyOf,
  keyMembers: new Set(['ExternalID']),
  compare: compareMark,
  find: (v2, v3, findings, { without }) => {
    findMarkDifferences(v2, v3, findings, without)
  },
}

/**
 * Compares the flat marks of a window, V2's against those that the adapter answers with: one result for each record, so that the six
 * verdicts add up to the records. A record is what a mark id names, else what (Learner, AttendableEvent) names; the same key several times
 * on a side is one record with a `count`. Rows whose id the other side lacks are paired by (Learner, AttendableEvent), which makes
 * `ExternalID` differ. What no key names is `unknown`. In the order of V2. Error: `ADP_LIMIT` above `MAX_WINDOW_ROWS` rows.
 */
export function diffMarks(
  v2: readonly unknown[],
  v3: readonly unknown[],
  options: DiffOptions = {},
): readonly RecordDiff[] {
  return diffRows(v2, v3, marks, options)
}
