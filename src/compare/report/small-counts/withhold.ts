import { type Cell, type Equation, printedBounds } from './cell.ts'
import { type Bounds, boundsBy, inferBounds } from './infer-bounds.ts'

/** So many values have to remain possible for a count that is not shown. */
export const LEAST_POSSIBLE = 3

/**
 * Withholds further counts until no small one can be computed from the printed ones, nor narrowed to fewer than three values. Cells change
 * their state; their bounds are then what a reader can infer.
 */
export function withholdDerivable(cells: readonly Cell[], equations: readonly Equation[]): void {
  const equationsOf = new Map<Cell, Equation[]>()
  for (const equation of equations)
    for (const cell of [equation.total, ...equation.parts]) {
      const known = equationsOf.get(cell)
      if (known === undefined) equationsOf.set(cell, [equation])
      else known.push(equation)
    }
  for (;;) {
    inferBounds(cells, equations)
    const exposed = cells.filter(isExposed)
    // What was withheld and is still known protects nothing yet: it comes before the small counts that it is to protect.
    const useless = exposed.filter(({ state }) => state === 'withheld')
    // One at a time: what protects the count of a run mostly protects those of its days and classes too.
    if (![...useless, ...exposed].some((cell) => protect(cell, equationsOf.get(cell) ?? []))) return
  }
}

/** Gives up a cell of an equation that says too much of this one; false where there is none left. */
function protect(cell: Cell, equations: readonly Equation[]): boolean {
  const telling = equations.filter((equation) => says(equation, cell))
  const narrow = telling.filter((equation) => isNarrow(boundsWith(equation, cell)))
  return [...narrow, ...telling].some((equation) => giveUpOne(equation, cell))
}

const isNarrow = ({ low, high }: Bounds): boolean => high - low < LEAST_POSSIBLE - 1

/** A small count, or one that was withheld to protect one, of which a reader knows too much. */
const isExposed = (cell: Cell): boolean => cell.state !== 'shown' && cell.role !== 'unknown' && isNarrow(cell)

/** What the printed form of a cell and one equation say of it together. */
function boundsWith(equation: Equation, cell: Cell): Bounds {
  const printed = printedBounds(cell)
  const { low, high } = boundsBy(equation, cell)
  return { low: Math.max(low, printed.low), high: Math.min(high, printed.high) }
}

/** True where an equation says more of a cell than its printed form does. */
function says(equation: Equation, cell: Cell): boolean {
  const printed = printedBounds(cell)
  const { low, high } = boundsWith(equation, cell)
  return low > printed.low || high < printed.high
}

/** Withholds another cell of the equation, or the cell itself where no other is left; false where it is withheld already. */
function giveUpOne({ total, parts }: Equation, exposed: Cell): boolean {
  const others = [total, ...parts].filter((cell) => cell !== exposed && cell.role === 'printed')
  // A zero hides little: it makes a count no larger than it is.
  const counted = others.filter(({ state, value }) => state !== 'withheld' && value > 0)
  const zeros = others.filter(({ state, value }) => state === 'shown' && value === 0)
  const chosen = first(counted) ?? first(zeros) ?? (exposed.state === 'small' ? exposed : undefined)
  if (chosen === undefined) return false
  chosen.state = 'withheld'
  return true
}

/** By rank; shown counts before small ones; of the shown ones the smallest says least, of the small ones the largest hides most. */
function first(cells: readonly Cell[]): Cell | undefined {
  const weight = ({ state, value }: Cell): number =>
    state === 'shown' ? value : Number.MAX_SAFE_INTEGER - value
  let found: Cell | undefined
  for (const cell of cells)
    if (
      found === undefined ||
      cell.rank < found.rank ||
      (cell.rank === found.rank && weight(cell) < weight(found))
    )
      found = cell
  return found
}
