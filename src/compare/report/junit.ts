import { differenceKinds } from '../verdict.ts'
import { formatCount } from './format.ts'
// It escapes what XML wants escaped as well.
import { html as xml, type Markup } from './html/markup.ts'
import type { Report } from './report.ts'

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
 * A report as JUnit XML, as CI systems show it: one suite for each kind of difference with a failing case for each class of it, one for
 * the run itself (what makes it inconclusive is an error), and one for the partner's own rules (an expired one fails).
 */
export function toJunit(report: Report): string {
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
    return { name: `difference: ${kind}`, className: `compare.${kind}`, cases: shown(cases) }
  })
  const rules = run.ownRules.map(({ name, path, owner, expires, expired, count }): Case => {
    const message = `Expired on ${expires}: ${formatCount(count)} fields count as differences (owner: ${owner})`
    const problem = { kind: 'failure', type: 'expired', message } as const
    return { name: `${name}: ${path}`, problem: expired && count > 0 ? problem : undefined }
  })
  return [
    { name: 'run', className: 'compare.run', seconds, cases: [whole] },
    ...differences,
    { name: 'own rules', className: 'compare.ownRules', cases: shown(rules) },
  ]
}

/** A suite without a case would not be shown. */
const shown = (cases: readonly Case[]): readonly Case[] => (cases.length > 0 ? cases : [{ name: 'none' }])

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
