import { explain } from './explanations.ts'
import { headlineOf } from './headline.ts'
import type { PublishedRun } from './published-run.ts'

/**
 * A report as one JSON document, of the form that docs/compare-report.schema.json describes: the members of the run's document with
 * printed counts, the outcome in words, and an explanation of each class of differences.
 */
export function toJson(run: PublishedRun): string {
  const { schema, report, exact, outcome, doubts, ...members } = run
  const headline = headlineOf(run)
  const document = {
    schema,
    report,
    exact,
    outcome,
    doubts,
    headline: headline.sentence,
    ...members,
    differences: run.differences.map((difference) => ({
      ...difference,
      explanation: explain({ ...difference }),
    })),
  }
  return `${JSON.stringify(document, undefined, 2)}\n`
}
