/** What a comparison says of one record. Every record that is compared gets exactly one. */
export const verdicts = ['same', 'equivalent', 'differs', 'onlyV2', 'onlyV3', 'unknown'] as const
export type Verdict = (typeof verdicts)[number]

/** Each verdict in words. */
export const verdictTexts: Readonly<Record<Verdict, { readonly label: string; readonly meaning: string }>> = {
  same: { label: 'Same', meaning: 'every field is equal' },
  equivalent: {
    label: 'Equivalent',
    meaning: 'fields are written differently and mean the same by a named rule',
  },
  differs: { label: 'Differs', meaning: 'at least one field has another meaning' },
  onlyV2: { label: 'Only in V2', meaning: 'V3 through the adapter does not have the record' },
  onlyV3: { label: 'Only in V3', meaning: 'V2 does not have the record' },
  unknown: { label: 'Unknown', meaning: 'one side gave no answer that can be compared' },
}

/** `missing`: V3 lacks what V2 has. `extra`: V2 lacks what V3 has. */
export const differenceKinds = ['value', 'type', 'null', 'missing', 'extra', 'count', 'order'] as const
export type DifferenceKind = (typeof differenceKinds)[number]

/** A field that differs. Classes describe a value without showing it: `code:present`, `length:10-20`, `time:+3600s`. */
export interface FieldDifference {
  /** Names of members, joined by `/`; a list's elements have the path of the list. `reply/…` and `part/…`: of the wire form. */
  readonly path: string
  readonly kind: DifferenceKind
  readonly v2Class: string
  readonly v3Class: string
}

/** A field whose two forms mean the same by a rule. */
export interface FieldEquivalence {
  /** A built-in rule, or the name of a partner's own. */
  readonly rule: string
  readonly path: string
}

/** The result of comparing one record. */
export interface Comparison {
  readonly verdict: Verdict
  /** Empty unless the verdict is `differs`. */
  readonly differences: readonly FieldDifference[]
  readonly equivalences: readonly FieldEquivalence[]
  /** Names of expired rules of the partner that would have made one of these differences equivalent; undefined: none. */
  readonly expiredRules?: readonly string[]
}

/** True where both sides show the same. */
export const isEqual = (comparison: Pick<Comparison, 'verdict'> | undefined): boolean =>
  comparison?.verdict === 'same' || comparison?.verdict === 'equivalent'

export type VerdictCounts = Readonly<Record<Verdict, number>>
