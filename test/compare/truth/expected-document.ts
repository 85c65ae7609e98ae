import type { RunDocument } from '../../../src/compare/run-document.ts'
import type { Comparison, Verdict } from '../../../src/compare/verdict.ts'
import { verdicts } from '../../../src/compare/verdict.ts'
import { dayOf, keyOf, type ListedDifference } from './differ-faces.ts'
import { expectations } from './expected-findings.ts'

/** The number of occurrences by name, such as `compared`, `verdict same` or `day 2026-03-02 differs`. */
export type Counts = ReadonlyMap<string, number>

/** The marks that a run compares, in addition to its differences. */
export interface ComparedMarks {
  readonly total: number
  /** The days of the marks that have a history, by `learner event`. V2 shows the history, and the adapter omits the history. */
  readonly withHistory: ReadonlyMap<string, string>
}

/** Returns the counts that a run must report, computed only from the data of the sandbox. */
export function expectedCounts(
  truth: readonly ListedDifference[],
  { total, withHistory }: ComparedMarks,
): Counts {
  const counts = new Map<string, number>()
  const add = (name: string, by = 1): void => void counts.set(name, (counts.get(name) ?? 0) + by)
  const records = Map.groupBy(truth, ({ mark }) => keyOf(mark))
  const historyOf = (key: string): Comparison[] => (withHistory.has(key) ? [history] : [])
  let other = 0
  const record = (day: string, comparison: Comparison): void => {
    add(`verdict ${comparison.verdict}`)
    if (comparison.verdict !== 'same') add(`day ${day} ${comparison.verdict}`)
    for (const { path, kind, v2Class, v3Class } of comparison.differences)
      add(`differs ${path} ${kind} ${v2Class} ${v3Class}`)
    for (const { rule, path } of comparison.equivalences) add(`equivalent ${rule} ${path}`)
  }
  for (const [key, all] of records) {
    const found = all.map((one) => expectations[one.kind](one))
    const [first] = all
    record(first === undefined ? '' : dayOf(first.mark), join([...found, ...historyOf(key)]))
    other += 1
  }
  for (const [key, day] of withHistory) {
    if (records.has(key)) continue
    record(day, history)
    other += 1
  }
  add('verdict same', total - other)
  add('compared', total)
  return counts
}

const none: Comparison = { verdict: 'same', differences: [], equivalences: [] }
const history: Comparison = {
  ...none,
  verdict: 'equivalent',
  equivalences: [{ rule: 'history-left-out', path: 'AttendanceHistorys' }],
}

/**
 * Combines the findings of a record into its severest verdict, each finding once. A record that only one side has keeps no other finding.
 */
function join(found: readonly Comparison[]): Comparison {
  const only = found.find(({ verdict }) => verdict === 'onlyV2' || verdict === 'onlyV3')
  if (only !== undefined) return only
  const order: readonly Verdict[] = ['differs', 'equivalent']
  const verdict = order.find((one) => found.some((comparison) => comparison.verdict === one)) ?? 'same'
  const once = <Finding>(findings: readonly Finding[]): Finding[] => [
    ...new Map(findings.map((finding) => [JSON.stringify(finding), finding])).values(),
  ]
  return {
    verdict,
    differences: once(found.flatMap(({ differences }) => differences)),
    equivalences: once(found.flatMap(({ equivalences }) => equivalences)),
  }
}

/** Returns the counts that the document of a run states, in the form of `expectedCounts`. */
export function reportedCounts(document: RunDocument): Counts {
  const counts = new Map<string, number>()
  const add = (name: string, count: number): void => {
    if (count > 0) counts.set(name, (counts.get(name) ?? 0) + count)
  }
  for (const verdict of verdicts) add(`verdict ${verdict}`, document.verdicts[verdict])
  for (const { path, kind, v2Class, v3Class, count } of document.differences)
    add(`differs ${path} ${kind} ${v2Class} ${v3Class}`, count)
  for (const { rule, path, count } of document.equivalences) add(`equivalent ${rule} ${path}`, count)
  for (const { name, verdicts: ofDay } of document.days)
    for (const verdict of verdicts) if (verdict !== 'same') add(`day ${name} ${verdict}`, ofDay[verdict])
  add('compared', document.compared)
  return counts
}

/** The mistakes of a report: findings that it lacks, and findings that it should not have. */
export interface Mistakes {
  readonly missed: readonly string[]
  readonly false: readonly string[]
}

/** Compares a report with the data of the sandbox, and checks that its parts add up. */
export function judgeDocument(expected: Counts, document: RunDocument): Mistakes {
  const reported = reportedCounts(document)
  const names = new Set([...expected.keys(), ...reported.keys()])
  const missed: string[] = []
  const wrong: string[] = []
  for (const name of names) {
    const [want, got] = [expected.get(name) ?? 0, reported.get(name) ?? 0]
    if (got < want) missed.push(`${name}: ${got} of ${want}`)
    if (got > want) wrong.push(`${name}: ${got} instead of ${want}`)
  }
  return { missed, false: [...wrong, ...unbalanced(document)] }
}

function unbalanced(document: RunDocument): string[] {
  const sum = (of: RunDocument['verdicts']): number =>
    verdicts.reduce((total, verdict) => total + of[verdict], 0)
  const { offered, compared, dropped, skipped, days, kinds, complete } = document
  const faults: string[] = []
  const check = (name: string, one: number, other: number): void => {
    if (one !== other) faults.push(`${name}: ${one} and ${other}`)
  }
  check('the verdicts add up to compared', sum(document.verdicts), compared)
  check('compared, dropped and skipped add up to offered', compared + dropped + skipped, offered)
  check('the days add up to compared', days.reduce((total, day) => total + sum(day.verdicts), 0), compared) // prettier-ignore
  check('the kinds add up to compared', kinds.reduce((total, kind) => total + sum(kind.verdicts), 0), compared) // prettier-ignore
  if (!complete) faults.push('the run is not complete')
  return faults
}
