import junit, { type Builder, type TestCase } from 'junit-report-builder'

import { differenceKinds } from '../verdict.ts'
import { formatCount } from './format.ts'
import type { Report } from './report.ts'

/** The package is CommonJS: its types promise a member `default` that only its other build has. */
const root = junit as unknown as Builder

/**
 * A report as JUnit XML, as CI systems show it: one suite for each kind of difference with a failing case for each class of it, one for
 * the run itself (what makes it inconclusive is an error), and one for the partner's own rules (an expired one fails).
 */
export function toJunit({ run, headline, doubts, limits, classes }: Report): string {
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
