import junit, { type Builder, type TestCase } from 'junit-report-builder'

import { differenceKinds } from '../verdict.ts'
import { explain } from './explanations.ts'
import { formatCount } from './format.ts'
import { headlineOf } from './headline.ts'
import { type ReportedClass, reportedClasses, type PublishedRun } from './published-run.ts'

/** The package is CommonJS: its types promise a member `default` that only its other build has. */
const root = junit as unknown as Builder

/**
 * A report as JUnit XML, as CI systems show it: one suite for each kind of difference with a failing case for each class of it, one for
 * the run itself (what makes it inconclusive is an error), and one for the partner's own rules (an expired one fails).
 */
export function toJunit(run: PublishedRun): string {
  const builder = root.newBuilder().name(`compare ${run.run}`)
  addRun(builder, run)
  const reported = reportedClasses(run).filter(({ kind }) => kind !== 'unknown')
  for (const kind of ['onlyV2', 'onlyV3', ...differenceKinds] as const)
    addKind(
      builder,
      kind,
      reported.filter((one) => one.kind === kind),
    )
  addRules(builder, run)
  return builder.build()
}

function addRun(builder: Builder, run: PublishedRun): void {
  const { sentence, doubts } = headlineOf(run)
  const suite = builder
    .testSuite()
    .name('run')
    .time((Date.parse(run.endedAt) - Date.parse(run.startedAt)) / 1000)
  const test = suite
    .testCase()
    .className('compare.run')
    .name('the run is conclusive')
    .standardOutput(sentence)
  const open = run.doubts.filter((doubt) => doubt !== 'expiredRules')
  if (open.length > 0) test.error(doubts.join(' '), open.join(','))
}

function addKind(builder: Builder, kind: ReportedClass['kind'], reported: readonly ReportedClass[]): void {
  const suite = builder.testSuite().name(`difference: ${kind}`)
  if (reported.length === 0) suite.testCase().className(`compare.${kind}`).name('none')
  for (const one of reported) {
    const { path, v2Class, v3Class, count } = one
    const { title, meaning, cause, remedy } = explain(one)
    const test: TestCase = suite
      .testCase()
      .className(`compare.${kind}`)
      .name(`${path}: ${v2Class} -> ${v3Class}`)
    test.failure(`${title}: ${formatCount(count)} records`, kind)
    test.stacktrace(`${meaning}\nLikely cause: ${cause}\nWhat to do: ${remedy}`)
  }
}

function addRules(builder: Builder, { ownRules }: PublishedRun): void {
  const suite = builder.testSuite().name('own rules')
  if (ownRules.length === 0) suite.testCase().className('compare.ownRules').name('none')
  for (const { name, path, owner, expires, expired, count } of ownRules) {
    const test = suite.testCase().className('compare.ownRules').name(`${name}: ${path}`)
    if (expired && count > 0)
      test.failure(
        `Expired on ${expires}: ${formatCount(count)} fields count as differences (owner: ${owner})`,
        'expired',
      )
  }
}
