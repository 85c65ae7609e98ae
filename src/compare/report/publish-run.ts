import type { CountedGroup, RunDocument } from '../run-document.ts'
import { doubtsOf, outcomeOf } from '../run-outcome.ts'
import { type Verdict, verdicts } from '../verdict.ts'
import { cleanTexts } from './clean-text.ts'
import type { PublishedCount, PublishedRun, PublishedVerdicts } from './published-run.ts'
import type { Cell } from './small-counts/cell.ts'
import { toCells, type VerdictCells } from './small-counts/to-cells.ts'
import { withholdDerivable } from './small-counts/withhold.ts'

/**
 * Makes of the document of a run what a report may print: unless `exact`, counts from 1 to 4 as `<5`, and others as a lower bound where
 * they would reveal one; texts without characters that hide or reorder others. Every form of report prints this and nothing else.
 */
export function publishRun(document: RunDocument, { exact }: { readonly exact: boolean }): PublishedRun {
  const { named, all, equations } = toCells(document)
  if (!exact) withholdDerivable(all, equations)
  const print = (cell: Cell): PublishedCount => (exact ? cell.value : printCell(cell))
  const printVerdicts = (cells: VerdictCells): PublishedVerdicts =>
    Object.fromEntries(verdicts.map((verdict) => [verdict, print(cells[verdict])])) as Record<
      Verdict,
      PublishedCount
    >
  /** Replaces the count of each element; those that are not shown come last, and in an order that says nothing of their size. */
  const list = <Element extends { readonly count: number }>(
    elements: readonly Element[],
    cells: readonly Cell[],
    nameOf: (element: Omit<Element, 'count'>) => string,
  ): (Omit<Element, 'count'> & { readonly count: PublishedCount })[] =>
    elements
      .map((element, index) => ({ ...element, count: printAt(cells, index, print) }))
      .sort(
        (one, other) => sizeOf(other.count) - sizeOf(one.count) || compareText(nameOf(one), nameOf(other)),
      )
  const groups = (
    elements: readonly CountedGroup[],
    cells: readonly VerdictCells[],
  ): { readonly name: string; readonly verdicts: PublishedVerdicts }[] =>
    elements.flatMap(({ name }, index) => {
      const found = cells[index]
      return found === undefined ? [] : [{ name, verdicts: printVerdicts(found) }]
    })
  return cleanTexts({
    ...document,
    report: 'markbridge-compare',
    exact,
    outcome: outcomeOf(document),
    doubts: doubtsOf(document),
    offered: print(named.offered),
    compared: print(named.compared),
    dropped: print(named.dropped),
    skipped: print(named.skipped),
    verdicts: printVerdicts(named.verdicts),
    differences: list(document.differences, named.differences, (one) =>
      JSON.stringify([one.path, one.kind, one.v2Class, one.v3Class]),
    ),
    equivalences: list(document.equivalences, named.equivalences, ({ path, rule }) =>
      JSON.stringify([path, rule]),
    ),
    noise: {
      measured: document.noise.measured,
      records: print(named.noise),
      differences: list(document.noise.differences, named.noises, ({ path, kind }) =>
        JSON.stringify([path, kind]),
      ),
    },
    ownRules: document.ownRules.map((rule, index) => ({
      ...rule,
      count: printAt(named.ownRules, index, print),
    })),
    kinds: groups(document.kinds, named.kinds),
    codeClasses: groups(document.codeClasses, named.codeClasses),
    days: groups(document.days, named.days),
    delays: document.delays.map(({ upToMs }, index) => ({
      upToMs,
      count: printAt(named.delays, index, print),
    })),
    askedAgain: print(named.askedAgain),
  })
}

function printCell({ state, value, low }: Cell): PublishedCount {
  if (state === 'shown') return value
  return state === 'small' ? '<5' : `>=${low}`
}

function printAt(
  cells: readonly Cell[],
  index: number,
  print: (cell: Cell) => PublishedCount,
): PublishedCount {
  const cell = cells[index]
  return cell === undefined ? 0 : print(cell)
}

/** By what a count is sorted: its printed form alone. */
const sizeOf = (count: PublishedCount): number =>
  typeof count === 'number' ? count : count === '<5' ? 4 : Number(count.slice(2))

const compareText = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0)
