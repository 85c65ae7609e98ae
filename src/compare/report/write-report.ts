import { stringify } from 'csv-stringify/sync'

import type { CountedGroup, RunDocument } from '../run-document.ts'
import { verdicts } from '../verdict.ts'
import { explain } from './explanations.ts'
import { toHtml } from './html/page.ts'
import { toJunit } from './junit.ts'
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
