import { AdapterError } from '../../errors.ts'
import type { Comparison } from '../verdict.ts'
import { type AlignedRecord, alignRows, type Keys, movedRecords, pairRows } from './align.ts'
import { countClass } from './classes.ts'
import { findMarkDifferences, type MarkOptions } from './compare-mark.ts'
import { compareMembers } from './compare-values.ts'
import { createOwnRules, Findings, type OwnRules, plainly } from './findings.ts'
import { idOf, isMembers, memberOf, type Members } from './values.ts'

/**
 * What the order of rows means. `unasked`: no order was asked for, so another one is equivalent (rule `order-unasked`). `asked`: another
 * one is a difference. `free`: the rows were collected in no order of their own, so positions say nothing.
 */
type RowOrder = 'unasked' | 'asked' | 'free'

/** What both sides answered to one question. */
export interface Pair extends MarkOptions {
  /** `marks`: flat marks, V3's as the adapter answers with them. `registrations`: documents, as either service gives them. */
  readonly kind: 'marks' | 'registrations'
  /** Rows, at most `MAX_PAIR_ROWS` of either side. */
  readonly v2: readonly unknown[]
  readonly v3: readonly unknown[]
  /** `unasked` by default. */
  readonly order?: RowOrder
}

/** One record and what was found. It holds rows of the services: read it and let it go, never keep or log it. */
export interface RecordDiff {
  readonly comparison: Comparison
  /** The row of each side, the first one where it has several; undefined: that side has none. */
  readonly v2: unknown
  readonly v3: unknown
}

/** Rows of one side in one call: a caller with more cuts them into windows in which both sides have the same keys. */
export const MAX_PAIR_ROWS = 50_000

/** Path of what concerns a record as a whole: how often it occurs, its position. No member has this name. */
const ROW_PATH = '(row)'

const idIn = (row: unknown, name: string): string | undefined =>
  isMembers(row) ? idOf(memberOf(row, name)) : undefined

const pairKeyOf = (mark: unknown): string | undefined => {
  const [learner, event] = [idIn(mark, 'Learner'), idIn(mark, 'AttendableEvent')]
  // Ids have 64 characters at most, so that this is the id of no mark by its length or its line end.
  return learner === undefined || event === undefined ? undefined : `${learner}\n${event}`
}

/** service.md 2.10: a mark has an id; before it has one, learner and session name it. */
const keys: Readonly<Record<Pair['kind'], Keys>> = {
  marks: {
    keyOf: (mark) => idIn(mark, 'ExternalID') ?? pairKeyOf(mark),
    otherKeyOf: pairKeyOf,
    keyMembers: new Set(['ExternalID']),
  },
  registrations: { keyOf: (document) => idIn(document, 'ExternalID') },
}

/**
 * Compares what both sides answered: one result for each record, so that the six verdicts add up to the records. A record is what its id names,
 * a mark without one what (Learner, AttendableEvent) names; the same key several times on a side is one record with a `count`. Marks whose id the
 * other side lacks are paired by (Learner, AttendableEvent), which makes `ExternalID` differ. What no key names is `unknown`. In the order of V2.
 * Error: `ADP_LIMIT` above `MAX_PAIR_ROWS` rows.
 */
export function comparePair(pair: Pair): readonly RecordDiff[] {
  const { kind, v2, v3, order } = pair
  if (v2.length > MAX_PAIR_ROWS || v3.length > MAX_PAIR_ROWS) {
    const message = `A comparison takes ${MAX_PAIR_ROWS} rows of either side at a time: choose shorter windows of days.`
    throw new AdapterError('ADP_LIMIT', message)
  }
  const rules = kind === 'registrations' ? registrationRules(pair.rules) : pair.rules
  const { records, v2Unknown, v3Unknown } = alignRows(v2, v3, keys[kind])
  const moved = order === 'free' ? undefined : movedRecords(records)
  return [
    ...records.map((record) => ({
      comparison: compareRecord(record, { ...pair, rules }, moved?.has(record) === true),
      v2: record.v2.rows[0],
      v3: record.v3.rows[0],
    })),
    ...v2Unknown.map((row) => ({ comparison: plainly('unknown'), v2: row, v3: undefined })),
    ...v3Unknown.map((row) => ({ comparison: plainly('unknown'), v2: undefined, v3: row })),
  ]
}

function compareRecord(record: AlignedRecord, pair: Pair, isMoved: boolean): Comparison {
  const [v2Count, v3Count] = [record.v2.rows.length, record.v3.rows.length]
  if (v2Count === 0) return plainly('onlyV3')
  if (v3Count === 0) return plainly('onlyV2')
  const findings = new Findings(pair.rules)
  for (const [one, other] of pairRows(record))
    if (isMembers(one) && isMembers(other)) findDifferences(one, other, pair, findings)
  if (v2Count !== v3Count) findings.differ(ROW_PATH, 'count', [countClass(v2Count), countClass(v3Count)])
  if (isMoved && pair.order === 'asked') findings.differ(ROW_PATH, 'order', ['place', 'place'])
  else if (isMoved) findings.agree('order-unasked', ROW_PATH)
  return findings.result()
}

function findDifferences(v2: Members, v3: Members, { kind, without }: Pair, findings: Findings): void {
  if (kind === 'marks') findMarkDifferences(v2, v3, findings, without)
  else compareMembers('', v2, v3, findings, (name) => without?.has(name) === true)
}

/** V3's expand list asks for a list more than V2's (service.md 1.1), so that V2 never has it: that is the contract, not the data. */
const contract = createOwnRules(
  [
    {
      name: 'expand-list-of-v3',
      reason: 'V3 expands EnrolmentStatuses, which the expand list of V2 does not name (service.md 1.1).',
      owner: 'Markbridge',
      expires: '9999-12-31',
      path: 'Enrolments/EnrolmentStatuses',
      when: { v2Class: 'missing' },
    },
  ],
  '',
)

/** What the two expand lists differ in, then the partner's own rules. */
const registrationRules = (own: OwnRules | undefined): OwnRules => ({
  all: own?.all ?? [],
  find: (difference) => contract.find(difference) ?? own?.find(difference),
})

/**
 * A comparison without what V2 differs from itself in: `noise` is the comparison of the same record as V2 gave it twice. A field that
 * V2 does not repeat, or a record, says nothing of V3: the record is compared by its other fields.
 */
export function withoutNoise(comparison: Comparison, noise: Comparison): Comparison {
  if (comparison.verdict !== 'differs' || noise.differences.length === 0) return comparison
  const noisy = new Set(noise.differences.map(({ path }) => path))
  const differences = comparison.differences.filter(({ path }) => !noisy.has(path))
  if (differences.length === comparison.differences.length) return comparison
  if (differences.length > 0) return { ...comparison, differences }
  const verdict = comparison.equivalences.length > 0 ? 'equivalent' : 'same'
  return { verdict, differences, equivalences: comparison.equivalences }
}
