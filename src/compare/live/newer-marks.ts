import type { Clock } from '../../clock.ts'
import { isSameMoment, type Moment, momentOf, nanosBetween } from '../diff/values.ts'
import type { Comparison } from '../verdict.ts'
import { isFound, plainly } from './findings.ts'
import type { FlatMark } from './flat-mark.ts'
import { type AskMarks, type FollowedMark, groupsOf, type MarksRead, readMarks } from './read-marks.ts'
import { idOfMark } from './reply-bodies.ts'
import { waitFor } from '../../clock/wait-for.ts'

/** A mark that the other side shows otherwise, or does not show. */
export interface UnlikeMark {
  readonly followed: FollowedMark
  /** As the other side shows it. */
  readonly seen: FlatMark | undefined
  /** Time from the receipt of the write until the other side first showed this. */
  readonly seenAfterMs: number
  readonly comparison: Comparison
}

/** The side that served the marks. */
export interface ServingSide {
  readonly ask: AskMarks
  /** When the write was received, by the clock. */
  readonly receivedMs: number
  /** It may have stored a mark this much later than its reply says. */
  readonly storedWithinMs: number
  /** False: the content is that of the followed mark, and a later time alone is not a sign of another write. */
  readonly isCorrection: (followed: FollowedMark, seen: FlatMark) => boolean
}

export interface NewerOptions {
  readonly serving: ServingSide
  /** Asks the other side. */
  readonly ask: AskMarks
  readonly compare: (followed: FollowedMark, seen: FlatMark | undefined) => Comparison
  readonly clock: Clock
  /** How long a newer mark may take to be the same on both sides. */
  readonly settleMs: number
  readonly stopped: AbortSignal
}

type Result = Pick<UnlikeMark, 'followed' | 'comparison'>

const FIRST_PAUSE_MS = 500
/** How far the clocks of the service and of the instances may be apart. */
const CLOCK_MS = 1_000
const NANOS = 1_000_000

/**
 * Leaves out the marks that were superseded by a write which this instance has not seen: it came through another instance, or past the adapter. A
 * mark is superseded only where both sides show one and the same newer mark: what one side alone shows as newer is a difference, and so is what
 * they show otherwise after `settleMs`. Where the serving side cannot be read, the mark is unknown.
 */
export async function leaveSuperseded(
  marks: readonly UnlikeMark[],
  options: NewerOptions,
): Promise<readonly Result[]> {
  const { ask, serving, clock, settleMs, stopped } = options
  const isCandidate = ({ followed, seen, seenAfterMs }: UnlikeMark): boolean =>
    isNewer(followed, seen, seenAfterMs, serving)
  const results: Result[] = marks.filter((mark) => !isCandidate(mark))
  let open = marks.filter(isCandidate)
  const endMs = clock.nowMs() + settleMs
  for (let pauseMs = FIRST_PAUSE_MS; open.length > 0; pauseMs *= 2) {
    const isLast = clock.nowMs() >= endMs || stopped.aborted
    const again: UnlikeMark[] = []
    for (const group of groupsOf(open)) {
      const served = await readMarks(serving.ask, group.map(toFollowed))
      for (const own of group) {
        const judged = judge(own, served, options)
        if (judged === 'superseded') continue
        if (judged.isFinal || isLast) results.push(judged)
        else again.push(own)
      }
    }
    open = []
    if (again.length > 0) await waitFor(Math.max(0, Math.min(pauseMs, endMs - clock.nowMs())), clock, stopped)
    for (const group of groupsOf(again)) {
      const other = await readMarks(ask, group.map(toFollowed))
      if (other.kind === 'read')
        open.push(...group.map((own) => ({ ...own, seen: other.seenOf(own.followed) })))
      else results.push(...group.map(({ followed }) => ({ followed, comparison: plainly('unknown') })))
    }
  }
  return results
}

/** Not final: both sides have a newer mark, but not the same one yet. */
function judge(
  { followed, seen, comparison }: UnlikeMark,
  served: MarksRead,
  { serving, compare, clock }: NewerOptions,
): 'superseded' | (Result & { readonly isFinal: boolean }) {
  if (followed.place.isSuperseded()) return 'superseded'
  if (served.kind !== 'read') return { followed, comparison: plainly('unknown'), isFinal: true }
  const own = served.seenOf(followed)
  const afterMs = clock.nowMs() - serving.receivedMs
  if (own === undefined || !isNewer(followed, own, afterMs, serving))
    return { followed, comparison, isFinal: true }
  const newer = compare({ ...followed, mark: own }, seen)
  return isFound(newer) ? 'superseded' : { followed, comparison: newer, isFinal: false }
}

const toFollowed = ({ followed }: UnlikeMark): FollowedMark => followed

/**
 * True for a mark that another write has put in the place of the followed one: recorded later, beyond the precision of both times, and not in what
 * was the future when it was seen. Without these times it has another id.
 */
function isNewer(
  followed: FollowedMark,
  seen: FlatMark | undefined,
  seenAfterMs: number,
  { isCorrection, storedWithinMs }: ServingSide,
): boolean {
  const id = idOfMark(followed.mark)
  // A reply without a record says nothing that a newer mark could be told by.
  if (seen === undefined || id === undefined || !isCorrection(followed, seen)) return false
  const [from, to] = [recordedOn(followed.mark), recordedOn(seen)]
  if (from === undefined || to === undefined) return ![undefined, id].includes(idOfMark(seen))
  const laterMs = nanosBetween(from, to) / NANOS
  return !isSameMoment(from, to) && laterMs >= storedWithinMs && laterMs <= seenAfterMs + CLOCK_MS
}

function recordedOn({ RecordedOn: time }: FlatMark): Moment | undefined {
  return typeof time === 'string' ? momentOf(time) : undefined
}
