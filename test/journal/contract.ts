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
import { toSubject, type WithOpener } from './contract/subject.ts'

/** Holds a kind of journal against what every journal with a store promises (src/journal/journal.ts). */
export function describeJournal(name: string, runs: number, withOpener: WithOpener): void {
  const subject = toSubject(name, runs, withOpener)
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
