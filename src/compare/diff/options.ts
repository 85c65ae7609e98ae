import type { OwnRules } from './own-rules.ts'

/**
 * What the order of rows means. `unasked`: no order was asked for, so another one is equivalent (rule `order-unasked`). `asked`: another
 * one is a difference. `free`: the rows were collected in no order of their own, so positions say nothing.
 */
export type RowOrder = 'unasked' | 'asked' | 'free'

export interface DiffOptions {
  /** The partner's own rules; none by default. */
  readonly rules?: OwnRules
  /** Members that are not compared, such as `RecordedOn` of a reply; none by default. */
  readonly without?: ReadonlySet<string>
  /** `unasked` by default. */
  readonly order?: RowOrder
}

/** Rows of one side in one call: a caller with more cuts them into windows in which both sides have the same keys. */
export const MAX_WINDOW_ROWS = 50_000
