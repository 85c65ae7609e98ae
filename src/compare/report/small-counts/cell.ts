/** Counts from 1 to 4 are small: they may point to a single child. 0 is shown. */
export const LEAST_SHOWN = 5

/** How a count is printed: `shown` as it is, `small` as `<5`, `withheld` as `>=` a bound that follows from everything else. */
export type CellState = 'shown' | 'small' | 'withheld'

/** A count of a report, and what a reader of the report can infer about it: it is from `low` to `high`. */
export interface Cell {
  readonly value: number
  /** `implied`: not printed, but the difference of printed counts. `unknown`: neither printed nor implied. */
  readonly role: 'printed' | 'implied' | 'unknown'
  /** Which cell of an equation is given up first to protect another: the lowest. */
  readonly rank: number
  state: CellState
  low: number
  high: number
}

/** What a reader may assume: `total` is the sum of `parts`. */
export interface Equation {
  readonly total: Cell
  readonly parts: readonly Cell[]
}

const isSmall = (value: number): boolean => value > 0 && value < LEAST_SHOWN

/** A cell in its first state, before others are protected. */
export function createCell(value: number, rank: number, role: Cell['role'] = 'printed'): Cell {
  const state = role === 'unknown' ? 'withheld' : isSmall(value) ? 'small' : 'shown'
  return { value, role, rank, state, low: 0, high: Infinity }
}

/** What the printed form alone says of a count. */
export function printedBounds({ state, value }: Cell): { readonly low: number; readonly high: number } {
  if (state === 'shown') return { low: value, high: value }
  return state === 'small' ? { low: 1, high: LEAST_SHOWN - 1 } : { low: 0, high: Infinity }
}
