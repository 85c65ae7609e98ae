import type { RunDocument } from '../run-document.ts'
import { explain } from './explanations.ts'
import { toHtml } from './html/page.ts'
import { createReport, type Report } from './report.ts'
import { toCsv } from './to-csv.ts'
import { toJunit } from './to-junit.ts'

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
