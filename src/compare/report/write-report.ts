import { stringify } from 'csv-stringify/sync'
import junit, { type Builder, type TestCase } from 'junit-report-builder'

import type { CountedGroup, RunDocument } from '../run-document.ts'
import { differenceKinds, verdicts } from '../verdict.ts'
import { explain } from './explanations.ts'
import { formatCount } from './format.ts'
import { toHtml } from './html/page.ts'
import { createReport, type Report } from './report.ts'

/** The forms of a report. */
export const reportFormats = ['html', 'json', 'csv', 'junit'] as const
export type ReportFormat = (typeof reportFormats)[number]

const writers: Readonly<Record<ReportFormat, (report: Report) => string>> = {
  html: toHtml,
  json: toJson,
  csv: toCsv,
  junit: toJunit,
}

/** Writes the report of a run. `exact` prints counts as they are: such a report may point to single learners. */
export function writeReport(
  document: RunDocument,
  format: ReportFormat,
  options: { readonly exact: boolean },
): string {
  return writers[format](createReport(document, options))
}

/** A report as one JSON document, of the form that docs/compare-report.schema.json describes. */
function toJson({ run, exact, outcome, doubts, headline }: Report): string {
  const { schema, ...members } = run
  const differences = run.differences.map((found) => ({ ...found, explanation: explain(found) }))
  // Marks the document as a report, which no report is made from.
  const head = { schema, report: 'markbridge-compare', exact, outcome, doubts, headline }
  return `${JSON.stringify({ ...head, ...members, differences }, undefined, 2)}\n`
}

/** One count with all that names it; columns that a section does not use are empty. */
interface Row {
  readonly section: string
  readonly name?: string
  readonly path?: string
  readonly kind?: string
  readonly v2Class?: string
  readonly v3Class?: string
  readonly verdict?: string
  readonly count: number
  readonly note?: string
}

const columns = ['section', 'name', 'path', 'kind', 'v2Class', 'v3Class', 'verdict', 'count', 'note']

/** A report as a table with one count a line, as spreadsheets read it: cells that begin as a formula get a quote in front. */
function toCsv(report: Report): string {
  return stringify([...rowsOf(report)], {
    header: true,
    columns,
    record_delimiter: 'windows',
    escape_formulas: true,
    bom: true,
  })
}

function* rowsOf({ run, outcome }: Report): Generator<Row> {
  const { offered, compared, dropped, skipped, askedAgain, noise } = run
  yield { section: 'run', name: run.run, kind: run.kind, count: compared, note: outcome }
  const totals = { offered, compared, dropped, skipped, askedAgain, noisy: noise.records }
  for (const [name, count] of Object.entries(totals)) yield { section: 'total', name, count }
  for (const verdict of verdicts) yield { section: 'verdict', verdict, count: run.verdicts[verdict] }
  for (const difference of run.differences)
    yield { section: 'difference', ...difference, note: explain(difference).title }
  for (const { rule, path, count } of run.equivalences)
    yield { section: 'equivalence', name: rule, path, count }
  for (const { path, kind, count } of noise.differences) yield { section: 'noise', path, kind, count }
  for (const { name, path, count, owner, reason, expires, expired } of run.ownRules)
    yield {
      section: 'ownRule',
      name,
      path,
      count,
      note: `${reason} (${owner}, ${expired ? 'expired' : 'until'} ${expires})`,
    }
  yield* groupRows('kind', run.kinds)
  yield* groupRows('codeClass', run.codeClasses)
  yield* groupRows('day', run.days)
  yield* groupRows('hour', run.hours)
  for (const { upToMs, count } of run.delays)
    yield { section: 'delay', name: upToMs === null ? 'longer' : `${upToMs} ms`, count }
}

function* groupRows(section: string, groups: readonly CountedGroup[]): Generator<Row> {
  for (const { name, verdicts: counts } of groups)
    for (const verdict of verdicts) yield { section, name, verdict, count: counts[verdict] }
}

/** The package is CommonJS: its types promise a member `default` that only its other build has. */
const root = junit as unknown as Builder

/**
 * A report as JUnit XML, as CI systems show it: one suite for each kind of difference with a failing case for each class of it, one for
 * the run itself (what makes it inconclusive is an error), and one for the partner's own rules (an expired one fails).
 */
function toJunit({ run, headline, doubts, limits, classes }: Report): string {
  const builder = root.newBuilder().name(`compare ${run.run}`)
  const seconds = (Date.parse(run.endedAt) - Date.parse(run.startedAt)) / 1000
  const conclusive = builder
    .testSuite()
    .name('run')
    .time(seconds)
    .testCase()
    .className('compare.run')
    .name('the run is conclusive')
    .standardOutput(headline)
  const open = doubts.filter((doubt) => doubt !== 'expiredRules')
  if (open.length > 0) conclusive.error(limits.join(' '), open.join(','))
  const suiteOf = <Item>(
    name: string,
    className: string,
    items: readonly Item[],
    nameOf: (item: Item) => string,
    fail: (test: TestCase, item: Item) => void,
  ): void => {
    const suite = builder.testSuite().name(name)
    // A suite without a case would not be shown.
    if (items.length === 0) suite.testCase().className(className).name('none')
    for (const item of items) fail(suite.testCase().className(className).name(nameOf(item)), item)
  }
  for (const kind of ['onlyV2', 'onlyV3', ...differenceKinds] as const) {
    const own = classes.filter((one) => one.kind === kind)
    suiteOf(
      `difference: ${kind}`,
      `compare.${kind}`,
      own,
      ({ path, v2Class, v3Class }) => `${path}: ${v2Class} -> ${v3Class}`,
      (test, { count, explanation }) => {
        const { title, meaning, cause, remedy } = explanation
        test.failure(`${title}: ${formatCount(count)} records`, kind)
        test.stacktrace(`${meaning}\nLikely cause: ${cause}\nWhat to do: ${remedy}`)
      },
    )
  }
  suiteOf(
    'own rules',
    'compare.ownRules',
    run.ownRules,
    ({ name, path }) => `${name}: ${path}`,
    (test, { owner, expires, expired, count }) => {
      if (expired && count > 0)
        test.failure(
          `Expired on ${expires}: ${formatCount(count)} fields count as differences (owner: ${owner})`,
          'expired',
        )
    },
  )
  return builder.build()
}
