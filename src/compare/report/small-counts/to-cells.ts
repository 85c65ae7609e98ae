import type { CountedGroup, RunDocument } from '../../run-document.ts'
import { type Verdict, verdicts } from '../../verdict.ts'
import { type Cell, createCell, type Equation } from './cell.ts'

/** Which counts are given up first: totals before verdicts, a group or a class before the count of the whole run. */
const ranks = { offered: 1, compared: 2, left: 3, same: 4, equivalent: 5, verdict: 6, group: 1, list: 1 }

export type VerdictCells = Readonly<Record<Verdict, Cell>>

/** The cells of a document, in its order. */
export interface DocumentCells {
  readonly offered: Cell
  readonly compared: Cell
  readonly dropped: Cell
  readonly skipped: Cell
  readonly verdicts: VerdictCells
  readonly differences: readonly Cell[]
  readonly equivalences: readonly Cell[]
  readonly noise: Cell
  readonly noises: readonly Cell[]
  readonly ownRules: readonly Cell[]
  readonly kinds: readonly VerdictCells[]
  readonly codeClasses: readonly VerdictCells[]
  readonly days: readonly VerdictCells[]
  readonly delays: readonly Cell[]
  readonly askedAgain: Cell
}

/** The counts of a document as cells, and every relation between them that a reader could use to compute one from others. */
export function toCells(document: RunDocument): {
  readonly named: DocumentCells
  readonly all: readonly Cell[]
  readonly equations: readonly Equation[]
} {
  const all: Cell[] = []
  const equations: Equation[] = []
  const add = (value: number, rank: number, role?: Cell['role']): Cell => {
    const cell = createCell(value, rank, role)
    all.push(cell)
    return cell
  }
  const list = (counted: readonly { readonly count: number }[]): readonly Cell[] =>
    counted.map(({ count }) => add(count, ranks.list))
  /** `total` is the sum of `parts` and of what is in none of them. */
  const sum = (total: Cell, parts: readonly Cell[]): void => {
    const rest = total.value - sumOf(parts)
    if (rest >= 0 && parts.length > 0)
      equations.push({ total, parts: rest === 0 ? parts : [...parts, add(rest, ranks.list, 'implied')] })
  }
  /** Each record of `total` has one of the classes or several, so that a reader knows the sum of all classes as an upper bound only. */
  const cover = (total: Cell, classes: readonly Cell[]): void => {
    const listed = sumOf(classes)
    // A document that cuts its list of classes says nothing of this kind.
    if (listed < total.value || classes.length === 0) return
    const union = add(listed, ranks.list, 'unknown')
    const overlap = add(listed - total.value, ranks.list, 'unknown')
    equations.push({ total: union, parts: classes }, { total: union, parts: [total, overlap] })
  }

  // The totals come first: what is withheld for them mostly protects groups and classes as well.
  const totals = {
    offered: add(document.offered, ranks.offered),
    compared: add(document.compared, ranks.compared),
    dropped: add(document.dropped, ranks.left),
    skipped: add(document.skipped, ranks.left),
  }
  sum(totals.offered, [totals.compared, totals.dropped, totals.skipped])
  const counts: VerdictCells = toVerdictCells((verdict) =>
    add(
      document.verdicts[verdict],
      verdict === 'same' || verdict === 'equivalent' ? ranks[verdict] : ranks.verdict,
    ),
  )
  sum(
    totals.compared,
    verdicts.map((verdict) => counts[verdict]),
  )
  const groups = (counted: readonly CountedGroup[]): readonly VerdictCells[] => {
    const cells = counted.map((group) =>
      toVerdictCells((verdict) => add(group.verdicts[verdict], ranks.group)),
    )
    for (const verdict of verdicts)
      sum(
        counts[verdict],
        cells.map((group) => group[verdict]),
      )
    return cells
  }
  const named: DocumentCells = {
    ...totals,
    verdicts: counts,
    differences: list(document.differences),
    equivalences: list(document.equivalences),
    noise: add(document.noise.records, ranks.verdict),
    noises: list(document.noise.differences),
    ownRules: list(document.ownRules),
    kinds: groups(document.kinds),
    codeClasses: groups(document.codeClasses),
    days: groups(document.days),
    delays: list(document.delays),
    askedAgain: add(document.askedAgain, ranks.verdict),
  }
  cover(counts.differs, named.differences)
  cover(counts.equivalent, named.equivalences)
  cover(named.noise, named.noises)
  addRules(document, named, equations)
  return { named, all, equations }
}

const sumOf = (cells: readonly Cell[]): number => cells.reduce((sum, { value }) => sum + value, 0)

function toVerdictCells(create: (verdict: Verdict) => Cell): VerdictCells {
  return Object.fromEntries(verdicts.map((verdict) => [verdict, create(verdict)])) as Record<Verdict, Cell>
}

/** An own rule counts the fields that the list of equivalences has under its name, an expired one differences of its path. */
function addRules(document: RunDocument, cells: DocumentCells, equations: Equation[]): void {
  document.ownRules.forEach(({ name, path, expired }, index) => {
    const parts = expired
      ? cells.differences.filter((_, at) => document.differences[at]?.path === path)
      : cells.equivalences.filter((_, at) => document.equivalences[at]?.rule === name)
    const total = cells.ownRules[index]
    const isSum = total?.value === sumOf(parts)
    if (total !== undefined && isSum && parts.length > 0) equations.push({ total, parts })
  })
}
