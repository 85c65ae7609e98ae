import { type Cell, type Equation, printedBounds } from './cell.ts'

/** Passes over all equations; the bounds of a report's tables, which share few cells, settle after three or four. */
const MAX_PASSES = 100

export interface Bounds {
  readonly low: number
  readonly high: number
}

/** Sets the bounds of every cell to what a reader can infer from the printed counts and the equations. */
export function inferBounds(cells: readonly Cell[], equations: readonly Equation[]): void {
  for (const cell of cells) Object.assign(cell, printedBounds(cell))
  let changed = true
  for (let pass = 0; changed && pass < MAX_PASSES; pass++) {
    changed = false
    for (const equation of equations) if (narrow(equation)) changed = true
  }
}

/** What one equation says of one of its cells, by the bounds of the others. */
export function boundsBy({ total, parts }: Equation, cell: Cell): Bounds {
  const sums = new Sums(parts)
  return cell === total ? sums : sums.boundsOf(cell, total)
}

/** The sums of the bounds of parts; parts without an upper bound are counted. */
class Sums implements Bounds {
  low = 0
  #closedHigh = 0
  #open = 0

  constructor(parts: readonly Cell[]) {
    for (const part of parts) this.#add(part, 1)
  }

  get high(): number {
    return this.#open > 0 ? Infinity : this.#closedHigh
  }

  /** What the total and the other parts say of one part. */
  boundsOf({ low, high }: Bounds, total: Bounds): Bounds {
    const isOpen = high === Infinity
    const othersHigh = this.#open > (isOpen ? 1 : 0) ? Infinity : this.#closedHigh - (isOpen ? 0 : high)
    return { low: Math.max(0, total.low - othersHigh), high: total.high - (this.low - low) }
  }

  replace(before: Bounds, after: Bounds): void {
    this.#add(before, -1)
    this.#add(after, 1)
  }

  #add({ low, high }: Bounds, sign: 1 | -1): void {
    this.low += sign * low
    if (high === Infinity) this.#open += sign
    else this.#closedHigh += sign * high
  }
}

function narrow({ total, parts }: Equation): boolean {
  const sums = new Sums(parts)
  let changed = tighten(total, sums)
  for (const part of parts) {
    const before = { low: part.low, high: part.high }
    if (!tighten(part, sums.boundsOf(part, total))) continue
    sums.replace(before, part)
    changed = true
  }
  return changed
}

function tighten(cell: Cell, { low, high }: Bounds): boolean {
  const isTighter = low > cell.low || high < cell.high
  cell.low = Math.max(cell.low, low)
  cell.high = Math.min(cell.high, high)
  return isTighter
}
