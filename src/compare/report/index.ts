import type { RunDocument } from '../run-document.ts'
import { toHtml } from './html/page.ts'
import { publishRun } from './publish-run.ts'
import type { PublishedRun } from './published-run.ts'
import { toCsv } from './to-csv.ts'
import { toJson } from './to-json.ts'
import { toJunit } from './to-junit.ts'

/** The forms of a report. */
export const reportFormats = ['html', 'json', 'csv', 'junit'] as const
export type ReportFormat = (typeof reportFormats)[number]

const writers: Readonly<Record<ReportFormat, (run: PublishedRun) => string>> = {
  html: toHtml,
  json: toJson,
  csv: toCsv,
  junit: toJunit,
}

/** Writes the report of a run. `exact` prints counts from 1 to 4 as they are: such a report may point to single learners. */
export function writeReport(
  document: RunDocument,
  format: ReportFormat,
  options: { readonly exact: boolean },
): string {
  return writers[format](publishRun(document, options))
}
