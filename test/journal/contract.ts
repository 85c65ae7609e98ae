import { describeBegin } from './contract/begin.ts'
import { describeInstances } from './contract/instances.ts'
import { describeKnownMarks } from './contract/known-marks.ts'
import { describeNewcomers } from './contract/newcomers.ts'
import { describeOwnership } from './contract/ownership.ts'
import { describeReopen } from './contract/reopen.ts'
import { describeSides } from './contract/sides.ts'
import { describeSecrets } from './contract/secrets.ts'
import { describeSequences } from './contract/sequences.ts'
import { describeSettle } from './contract/settle.ts'
import { describeUnsettled } from './contract/unsettled.ts'
import { toSubject } from './contract/subject.ts'

/**
 * Defines the tests that every journal with a store must pass (src/journal/journal.ts). `newUrl` returns the URL of a new journal, and
 * `runs` is the number of random call sequences.
 */
export function describeJournal(name: string, runs: number, newUrl: () => Promise<string>): void {
  const subject = toSubject(name, runs, newUrl)
  for (const part of [
    describeBegin,
    describeOwnership,
    describeNewcomers,
    describeSettle,
    describeReopen,
    describeInstances,
    describeSecrets,
    describeSequences,
    describeUnsettled,
    describeKnownMarks,
    describeSides,
  ])
    part(subject)
}
