import { AdapterError } from '../../errors.ts'
import type { Comparison } from '../verdict.ts'
import { type AlignedRecord, alignRows, type Keys, movedRecords, pairRows } from './align.ts'
import { countClass } from './classes.ts'
import { findMarkDifferences, type MarkOptions } from './compare-mark.ts'
import { compareMembers } from './compare-values.ts'
import { createOwnRules, Findings, type OwnRules, verdictOnly } from './findings.ts'
import { idOf, isMembers, memberOf, type Members } from './values.ts'

/**
 * How the order of rows is judged. `unasked`: the query specified no order, so another order is equivalent (rule `order-unasked`). `asked`:
 * the query specified an order, so another order is a difference. `free`: positions are not compared.
 */
type RowOrder = 'unasked' | 'asked' | 'free'

export interface Pair extends MarkOptions {
  /** `marks` have the flat form of V2; the adapter translates the marks of V3. `registrations` are documents as each service returns them. */
  readonly kind: 'marks' | 'registrations'
  /** The rows, at most `MAX_PAIR_ROWS` on each side. */
  readonly v2: readonly unknown[]
  readonly v3: readonly unknown[]
  /** How the order of the rows is judged. Default: `unasked`. */
  readonly order?: RowOrder
}

/** The comparison of one record. The rows contain personal data, so they must not be stored or logged. */
export interface RecordDiff {
  readonly comparison: Comparison
  /** The first row that each side returned for the record, or `undefined` if the side lacks the record. */
  readonly v2: unknown
  readonly v3: unknown
}

/** The maximum number of rows per side. Callers split a larger comparison into windows of days. */
export const MAX_PAIR_ROWS = 50_000

/** The path of differences in the count or the position of a whole record. No member has this name. */
const ROW_PATH = '(row)'

const idIn = (row: unknown, name: string): string | undefined =>
  isMembers(row) ? idOf(memberOf(row, name)) : undefined

const pairKeyOf = (mark: unknown): string | undefined => {
  const [learner, event] = [idIn(mark, 'Learner'), idIn(mark, 'AttendableEvent')]
  // The line end and the length of two GUIDs distinguish this key from the id of a mark.
  return learner === undefined || event === undefined ? undefined : `${learner}\n${event}`
}

/** The keys that identify records (service.md 2.10): the id, or the learner and session of a mark without an id. */
const keys: Readonly<Record<Pair['kind'], Keys>> = {
  marks: {
    keyOf: (mark) => idIn(mark, 'ExternalID') ?? pairKeyOf(mark),
    otherKeyOf: pairKeyOf,
    keyMembers: new Set(['ExternalID']),
  },
  registrations: { keyOf: (document) => idIn(document, 'ExternalID') },
}

/**
 * Compares the rows of V2 and V3. Returns one result per record, in the order of V2, so that the six verdicts add up to the number of
 * records. A record is identified by its id, and a mark without an id by learner and event. Rows of one side with the same key form one
 * record, which has a difference of kind `count` if the other side has another number of rows. A mark whose id the other side lacks is
 * paired by learner and event, and differs in `ExternalID`. A row without a key is `unknown`. Throws `ADP_LIMIT` for more than
 * `MAX_PAIR_ROWS` rows per side.
 */
export function comparePair(pair: Pair): readonly RecordDiff[] {
  const { kind, v2, v3, order } = pair
  if (v2.length > MAX_PAIR_ROWS || v3.length > MAX_PAIR_ROWS) {
    const message = `One side has more than ${MAX_PAIR_ROWS} rows. Nothing was compared. Choose shorter windows of days.`
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
    ...v2Unknown.map((row) => ({ comparison: verdictOnly('unknown'), v2: row, v3: undefined })),
    ...v3Unknown.map((row) => ({ comparison: verdictOnly('unknown'), v2: undefined, v3: row })),
  ]
}

function compareRecord(record: AlignedRecord, pair: Pair, isMoved: boolean): Comparison {
  const [v2Count, v3Count] = [record.v2.rows.length, record.v3.rows.length]
  if (v2Count === 0) return verdictOnly('onlyV3')
  if (v3Count === 0) return verdictOnly('onlyV2')
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

/**
 * The rule for `EnrolmentStatuses`. V3 expands this list although the expand list of V2 does not name it (service.md 1.1), so V2 may lack
 * it.
 */
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

const registrationRules = (own: OwnRules | undefined): OwnRules => ({
  all: own?.all ?? [],
  find: (difference) => contract.find(difference) ?? own?.find(difference),
})

/**
 * Removes the fields in which two reads of the same record from V2 differ (`noise`). These fields say nothing about V3, so the other fields
 * decide the verdict.
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
