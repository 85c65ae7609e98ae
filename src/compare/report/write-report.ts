import { stringify } from 'csv-stringify/sync'

import type { CountedGroup, RunDocument } from '../run-document.ts'
import { differenceKinds, verdicts } from '../verdict.ts'
import { explain } from './explanations.ts'
import { formatCount } from './format.ts'
import { html as xml, type Markup } from './html/markup.ts'
import { toHtml } from './html/page.ts'
import { createReport, type Report, type ReportOptions } from './report.ts'

export const reportFormats = ['html', 'json', 'csv', 'junit'] as const
export type ReportFormat = (typeof reportFormats)[number]

const writers: Readonly<Record<ReportFormat, (report: Report) => string>> = {
  html: toHtml,
  json: toJson,
  csv: toCsv,
  junit: toJunit,
}

/** Formats the report of a run. With `exact`, counts are not rounded, and the report may point to single learners. */
export function writeReport(document: RunDocument, format: ReportFormat, options: ReportOptions): string {
  return writers[format](createReport(document, options))
}

/** Formats the report as JSON. docs/compare-report.schema.json describes the members. */
function toJson({ run, exact, outcome, doubts, headline }: Report): string {
  const { schema, ...members } = run
  const differences = run.differences.map((found) => ({ ...found, explanation: explain(found) }))
  // The member `report` marks this JSON as a report, so that `compare report` refuses to read it as a run document.
  const head = { schema, report: 'markbridge-compare', exact, outcome, doubts, headline }
  return `${JSON.stringify({ ...head, ...members, differences }, undefined, 2)}\n`
}

/** A row of the CSV. Columns that a section does not use are empty. */
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

/** Formats the report as CSV with one count per line. Cells that look like formulas are escaped for spreadsheets. */
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

interface Suite {
  readonly name: string
  readonly className: string
  readonly seconds?: number
  readonly cases: readonly Case[]
}

interface Case {
  readonly name: string
  readonly problem?: Problem | undefined
  readonly output?: string
}

interface Problem {
  readonly kind: 'failure' | 'error'
  readonly type: string
  readonly message: string
  readonly details?: string
}

/**
 * Formats the report as JUnit XML for CI systems. The suite of the run has an error if the run proves too little. Each kind of difference
 * has a suite with one failing case per class. The suite of the partner's rules has a case per rule, which fails if the rule has expired
 * but still matches differences.
 */
function toJunit(report: Report): string {
  const suites = suitesOf(report)
  const totals = totalsOf(suites.flatMap(({ cases }) => cases))
  const document = xml`<testsuites name="compare ${report.run.run}" ${totals}>
${suites.map(writeSuite)}</testsuites>`
  return `<?xml version="1.0" encoding="UTF-8"?>\n${document.toString()}\n`
}

function suitesOf({ run, headline, doubts, limits, classes }: Report): readonly Suite[] {
  const open = doubts.filter((doubt) => doubt !== 'expiredRules')
  const inconclusive = { kind: 'error', type: open.join(','), message: limits.join(' ') } as const
  const whole = {
    name: 'the run is conclusive',
    problem: open.length > 0 ? inconclusive : undefined,
    output: headline,
  }
  const seconds = (Date.parse(run.endedAt) - Date.parse(run.startedAt)) / 1000
  const differences = (['onlyV2', 'onlyV3', ...differenceKinds] as const).map((kind): Suite => {
    const cases = classes
      .filter((one) => one.kind === kind)
      .map(({ path, v2Class, v3Class, count, explanation }): Case => {
        const { title, meaning, cause, remedy } = explanation
        const message = `${title}: ${formatCount(count)} records`
        const details = `${meaning}\nLikely cause: ${cause}\nWhat to do: ${remedy}`
        const problem = { kind: 'failure', type: kind, message, details } as const
        return { name: `${path}: ${v2Class} -> ${v3Class}`, problem }
      })
    return { name: `difference: ${kind}`, className: `compare.${kind}`, cases: orNone(cases) }
  })
  const rules = run.ownRules.map(({ name, path, owner, expires, expired, count }): Case => {
    const message = `Expired on ${expires}, so ${formatCount(count)} fields count as differences (owner: ${owner})`
    const problem = { kind: 'failure', type: 'expired', message } as const
    return { name: `${name}: ${path}`, problem: expired && count > 0 ? problem : undefined }
  })
  return [
    { name: 'run', className: 'compare.run', seconds, cases: [whole] },
    ...differences,
    { name: 'own rules', className: 'compare.ownRules', cases: orNone(rules) },
  ]
}

/** Adds a case to an empty suite, because CI systems hide a suite without cases. */
const orNone = (cases: readonly Case[]): readonly Case[] => (cases.length > 0 ? cases : [{ name: 'none' }])

function totalsOf(cases: readonly Case[]): Markup {
  const count = (kind: Problem['kind']): number =>
    cases.filter(({ problem }) => problem?.kind === kind).length
  return xml`tests="${cases.length}" failures="${count('failure')}" errors="${count('error')}" skipped="0"`
}

function writeSuite({ name, className, seconds, cases }: Suite): Markup {
  const time = seconds !== undefined && xml` time="${seconds}"`
  const written = cases.map(({ name, problem, output }) => {
    const text = output !== undefined && xml`<system-out>${output}</system-out>`
    const content = [problem && writeProblem(problem), text]
    return xml`    <testcase classname="${className}" name="${name}">${content}</testcase>\n`
  })
  return xml`  <testsuite name="${name}"${time} ${totalsOf(cases)}>\n${written}  </testsuite>\n`
}

function writeProblem({ kind, type, message, details }: Problem): Markup {
  return xml`<${kind} message="${message}" type="${type}">${details}</${kind}>`
}
