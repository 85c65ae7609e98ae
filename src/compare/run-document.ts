import type { DifferenceKind, FieldDifference, FieldEquivalence, VerdictCounts } from './verdict.ts'

/** A class of differences and how many records have it. */
export interface CountedDifference extends FieldDifference {
  readonly count: number
}

export interface CountedEquivalence extends FieldEquivalence {
  readonly count: number
}

/** A rule of a partner's own, and what it did in a run. */
export interface AppliedRule {
  readonly name: string
  readonly reason: string
  readonly owner: string
  readonly path: string
  /** `YYYY-MM-DD`, the last day on which it counts. */
  readonly expires: string
  /** True: it had expired when the run began, so its fields counted as differences. */
  readonly expired: boolean
  /** Fields that it made equivalent, or would have made so if it had not expired. */
  readonly count: number
}

/** Verdicts of a group of records. */
export interface CountedGroup {
  readonly name: string
  readonly verdicts: VerdictCounts
}

/**
 * The result of a comparison run; it holds no value of a record. Counts are exact. `offered` = `compared` + `dropped` + `skipped`, and the
 * verdicts add up to `compared`; all of these count records.
 */
export interface RunDocument {
  /** Version of this form. */
  readonly schema: 1
  readonly run: string
  /** `reads`: both services were asked. `recording`: exchanges from files. `live`: evidence of a running adapter. */
  readonly kind: 'reads' | 'recording' | 'live'
  readonly partner: string | null
  /** ISO 8601. */
  readonly startedAt: string
  readonly endedAt: string
  /** First and last of `days`. */
  readonly from: string
  readonly to: string
  /** False: the run was stopped before its end. */
  readonly complete: boolean
  readonly offered: number
  readonly compared: number
  readonly dropped: number
  readonly skipped: number
  readonly verdicts: VerdictCounts
  /** Largest count first. */
  readonly differences: readonly CountedDifference[]
  readonly equivalences: readonly CountedEquivalence[]
  /** What V2 contradicts itself in; `measured` is false where it was read once. Such fields are not among `differences`. */
  readonly noise: {
    readonly measured: boolean
    readonly records: number
    readonly differences: readonly {
      readonly path: string
      readonly kind: DifferenceKind
      readonly count: number
    }[]
  }
  readonly ownRules: readonly AppliedRule[]
  /** Kinds of requests or of record: `marks`, `registrations`, `batch`, … */
  readonly kinds: readonly CountedGroup[]
  /** `code:present`, `code:absent`, `code:neither`, by V2's booleans, or V3's where V2 has no record. */
  readonly codeClasses: readonly CountedGroup[]
  /** By day of the records, `YYYY-MM-DD`, oldest first; of the kind `live` by the day on which they were compared, so that a mended cause shows. */
  readonly days: readonly CountedGroup[]
  /** How long a mark took to be visible on the other side; empty where that was not measured. `upToMs` null: longer than all. */
  readonly delays: readonly { readonly upToMs: number | null; readonly count: number }[]
  /** Records that were asked again because they changed during the run. */
  readonly askedAgain: number
}
