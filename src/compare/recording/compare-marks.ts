import { backgroundClock } from '../../clock.ts'
import type { AcceptedMark, FollowedMark } from '../live/index.ts'
import { compareAccepted, factsOf, followMarks, markKey, toFollowed } from '../live/index.ts'
import { type OwnRules, plainly } from '../diff/index.ts'
import type { AskAdapter } from '../run/index.ts'
import type { Tally } from '../tally.ts'
import { isLater } from './is-later.ts'

/** How V3 is asked for what was recorded. */
export interface AskOptions {
  readonly v3: AskAdapter
  readonly rules: OwnRules | undefined
  /** Milliseconds since the epoch. */
  readonly nowMs: () => number
  readonly signal: AbortSignal
}

/** The last mark that V2 accepted of each learner and event. */
export interface WrittenMarks {
  /** A write of these keys, in the order of writes, with the marks that V2 is known to have accepted of it. */
  wrote(keys: readonly (string | undefined)[], accepted: readonly AcceptedMark[]): void
  all(): readonly FollowedMark[]
  /** Marks that were left out, since there are too many. */
  left(): number
}

/** A larger number of marks is not held in memory. */
const MAX_MARKS = 50_000
/** Marks that are asked for together: as many events as `followMarks` reads. */
const MAX_EVENTS = 20
const MAX_TOGETHER = 500

/** Creates the memory of one run. */
export function createWrittenMarks(): WrittenMarks {
  const marks = new Map<string, FollowedMark>()
  let left = 0
  return {
    wrote: (keys, accepted) => {
      // What became of an earlier mark is not known after a write whose outcome is not known.
      for (const key of keys) if (key !== undefined) marks.delete(key)
      for (const { record, mark, place } of accepted) {
        const followed = toFollowed({ record, mark, place: { ...place, isSuperseded: () => false } })
        const key = markKey({ Learner: followed.learner, AttendableEvent: followed.event }) ?? ''
        if (marks.size < MAX_MARKS || marks.has(key)) marks.set(key, followed)
        else left += 1
      }
    },
    all: () => [...marks.values()],
    left: () => left,
  }
}

/** Reads marks on V3 and sets them against V2's replies. One that V3 shows with a later time was changed since, and is unknown. */
export async function compareMarks(
  marks: WrittenMarks,
  { v3, rules, nowMs, signal }: AskOptions,
  tally: Tally,
): Promise<void> {
  const path = '/V2/Attendance/AttendanceRecords'
  tally.skip(marks.left())
  for (const group of groups(marks.all())) {
    const { compared, skipped } = await followMarks(group, {
      ask: (filter) => v3({ kind: 'filter', path, query: `$filter=${encodeURIComponent(filter)}` }, signal),
      compare: ({ mark }, seen) => {
        const comparison = compareAccepted(mark, seen, rules)
        return comparison.verdict === 'differs' && isLater(seen, mark, nowMs())
          ? plainly('unknown')
          : comparison
      },
      clock: backgroundClock,
      settleMs: 0,
      sinceMs: 0,
      stopped: signal,
    })
    if (skipped !== undefined) tally.skip(group.length)
    for (const { followed, comparison } of compared) {
      const { day, codeClass } = factsOf(followed.mark, { isCorrection: false })
      tally.add(comparison, { kind: 'marks', day, codeClass })
    }
  }
}

/** Marks of a few events each. */
function* groups(marks: readonly FollowedMark[]): Generator<readonly FollowedMark[]> {
  let group: FollowedMark[] = []
  const events = new Set<string>()
  for (const mark of marks.toSorted((one, other) => (one.event < other.event ? -1 : 1))) {
    const event = mark.event.toLowerCase()
    if (group.length === MAX_TOGETHER || (events.size === MAX_EVENTS && !events.has(event))) {
      yield group
      group = []
      events.clear()
    }
    events.add(event)
    group.push(mark)
  }
  if (group.length > 0) yield group
}
