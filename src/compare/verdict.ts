/** The possible verdicts. Every compared record gets exactly one of them. */
export const verdicts = ['same', 'equivalent', 'differs', 'onlyV2', 'onlyV3', 'unknown'] as const
export type Verdict = (typeof verdicts)[number]

export const verdictTexts: Readonly<Record<Verdict, { readonly label: string; readonly meaning: string }>> = {
  same: { label: 'Same', meaning: 'every field is equal' },
  equivalent: {
    label: 'Equivalent',
    meaning: 'fields differ in form only, and a named rule accepts the form',
  },
  differs: { label: 'Differs', meaning: 'at least one field has a different value' },
  onlyV2: { label: 'Only in V2', meaning: 'V3 through the adapter does not have the record' },
  onlyV3: { label: 'Only in V3', meaning: 'V2 does not have the record' },
  unknown: { label: 'Unknown', meaning: 'one side gave no comparable answer' },
}

/** `missing` means that V3 lacks a member that V2 has, and `extra` that V2 lacks a member that V3 has. */
export const differenceKinds = ['value', 'type', 'null', 'missing', 'extra', 'count', 'order'] as const
export type DifferenceKind = (typeof differenceKinds)[number]

/** A field that differs. Its classes describe the values without showing them, such as `code:present`, `length:10-20` or `time:+3600s`. */
export interface FieldDifference {
  /**
   * The member names, joined by `/`. Elements of a list have the path of the list. Paths below `reply/` and `part/` describe the reply and
   * not the record.
   */
  readonly path: string
  readonly kind: DifferenceKind
  readonly v2Class: string
  readonly v3Class: string
}

/** A field whose values differ in form only, according to a built-in rule or a rule of the partner. */
export interface FieldEquivalence {
  readonly rule: string
  readonly path: string
}

export interface Comparison {
  readonly verdict: Verdict
  /** Empty unless the verdict is `differs`. */
  readonly differences: readonly FieldDifference[]
  readonly equivalences: readonly FieldEquivalence[]
  /** The expired rules of the partner that would have accepted a difference of this record, or `undefined` if there are none. */
  readonly expiredRules?: readonly string[]
}

export const isEqual = (comparison: { readonly verdict: string } | undefined): boolean =>
  comparison?.verdict === 'same' || comparison?.verdict === 'equivalent'

export type VerdictCounts = Readonly<Record<Verdict, number>>
