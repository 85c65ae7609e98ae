import type { RunDocument } from '../run-document.ts'
import { explain } from './explanations.ts'
import { headlineOf } from './headline.ts'
import { toHtml } from './html/page.ts'
import { publishRun, type PublishedRun } from './published-run.ts'
import { toCsv } from './to-csv.ts'
import { toJunit } from './to-junit.ts'

export { publishRun }

/** The forms of a report. */
export const reportFormats = ['html', 'json', 'csv', 'junit'] as const
export type ReportFormat = (typeof reportFormats)[number]

const writers: Readonly<Record<ReportFormat, (run: PublishedRun) => string>> = {
  html: toHtml,
  json: writeJson,
  csv: toCsv,
  junit: toJunit,
}

/** Writes the report of a run. `exact` prints counts as they are: such a report may point to single learners. */
export function writeReport(
  document: RunDocument,
  format: ReportFormat,
  options: { readonly exact: boolean },
): string {
  return writers[format](publishRun(document, options))
}

/**
 * A report as one JSON document, of the form that docs/compare-report.schema.json describes: the members of the run's document with
 * printed counts, the outcome in words, and an explanation of each class of differences.
 */
function writeJson(run: PublishedRun): string {
  const { schema, report, exact, outcome, doubts, ...members } = run
  const headline = headlineOf(run).sentence
  const differences = members.differences.map((found) => ({ ...found, explanation: explain(found) }))
  const document = { schema, report, exact, outcome, doubts, headline, ...members, differences }
  return `${JSON.stringify(document, undefined, 2)}\n`
}
