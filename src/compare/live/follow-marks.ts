import type { Comparison } from '../verdict.ts'
import type { UnsentReason } from './ask-sides.ts'
import { isFound, plainly } from './findings.ts'
import type { FlatMark } from './flat-mark.ts'
import { leaveSuperseded, type NewerOptions, type ServingSide } from './newer-marks.ts'
import { type FollowedMark, groupsOf, MAX_LEARNERS, type MarksRead, readMarks } from './read-marks.ts'
import type { SkipReason } from './skip-reason.ts'
import { waitFor } from '../../clock/wait-for.ts'

export interface FollowOptions extends Omit<NewerOptions, 'serving'> {
  /** Asked about marks of which the other side shows a newer one; undefined: it cannot be, and they count as different. */
  readonly serving?: ServingSide
  /** When the first side had answered, by `clock`. */
  readonly sinceMs: number
}

/** The end of each mark that was followed to it. */
export interface FollowResult {
  readonly compared: readonly { readonly followed: FollowedMark; readonly comparison: Comparison }[]
  readonly delaysMs: readonly number[]
  /** Set where nothing was compared. */
  readonly skipped: SkipReason | undefined
}

/** Calls of one round: a batch over many events is sampled. */
const MAX_CALLS = 20
const FIRST_PAUSE_MS = 500

interface Open {
  readonly followed: FollowedMark
  seen: FlatMark | undefined
  seenAfterMs: number
  comparison: Comparison | undefined
  /** Read once replication had had its time. */
  isSettled: boolean
}

/**
 * Reads marks on the other side until each is there as it was accepted, for the time that replication may take, with pauses that double. What
 * a read after that time shows counts; a mark that was not found and cannot be read then is unknown. A mark with a newer one of its learner and
 * event is left out, whether this instance has seen that one written or both sides show it.
 */
export async function followMarks(
  marks: readonly FollowedMark[],
  options: FollowOptions,
): Promise<FollowResult> {
  const { clock, settleMs, sinceMs, stopped, serving } = options
  const compared: FollowResult['compared'][number][] = []
  const delaysMs: number[] = []
  let open = sampled(marks).map(toOpen)
  let unsent: UnsentReason | undefined
  let pauseMs = FIRST_PAUSE_MS
  const endMs = clock.nowMs() + settleMs
  const isStopped = (): boolean => stopped.aborted
  while (open.length > 0 && !isStopped()) {
    const isLast = clock.nowMs() >= endMs
    open = open.filter(({ followed }) => !followed.place.isSuperseded())
    for (const group of groupsOf(open)) {
      const read = await readGroup(group, options)
      if (read.kind === 'unsent') unsent = read.reason
      if (read.kind === 'unsent') break
      for (const own of group) own.isSettled = isLast
    }
    const atMs = clock.nowMs()
    for (const { followed, comparison } of open)
      if (comparison !== undefined && isFound(comparison)) {
        compared.push({ followed, comparison })
        delaysMs.push(atMs - sinceMs)
      }
    open = open.filter(({ comparison }) => comparison === undefined || !isFound(comparison))
    if (unsent !== undefined || isLast || isStopped() || open.length === 0) break
    await waitFor(Math.max(0, Math.min(pauseMs, endMs - atMs)), clock, stopped)
    pauseMs *= 2
  }
  const left = open.flatMap(({ comparison, ...own }) =>
    comparison === undefined || own.followed.place.isSuperseded() ? [] : [{ ...own, comparison }],
  )
  const [settled, others] = [
    left.filter(({ isSettled }) => isSettled),
    left.filter(({ isSettled }) => !isSettled),
  ]
  compared.push(
    ...(serving === undefined ? settled : await leaveSuperseded(settled, { ...options, serving })),
  )
  compared.push(...others.map(({ followed }) => ({ followed, comparison: plainly('unknown') })))
  const reason = isStopped() ? 'stopped' : (unsent ?? 'superseded')
  return { compared, delaysMs, skipped: compared.length === 0 ? reason : undefined }
}

const toOpen = (followed: FollowedMark): Open => ({
  followed,
  seen: undefined,
  seenAfterMs: 0,
  comparison: undefined,
  isSettled: false,
})

async function readGroup(
  group: readonly Open[],
  { ask, compare, clock, serving }: FollowOptions,
): Promise<MarksRead> {
  const read = await readMarks(
    ask,
    group.map(({ followed }) => followed),
  )
  if (read.kind === 'unsent') return read
  for (const own of group) {
    const seen = read.kind === 'read' ? read.seenOf(own.followed) : undefined
    if (seen?.['RecordedOn'] !== own.seen?.['RecordedOn'])
      own.seenAfterMs = clock.nowMs() - (serving?.receivedMs ?? 0)
    own.seen = seen
    own.comparison = read.kind === 'read' ? compare(own.followed, seen) : plainly('unknown')
  }
  return read
}

/** Every nth event of a batch with too many: which ones does not depend on their marks. */
function sampled(marks: readonly FollowedMark[]): readonly FollowedMark[] {
  const events = [...new Set(marks.map(({ event }) => event.toLowerCase()))]
  if (events.length <= MAX_CALLS) return marks.slice(0, MAX_CALLS * MAX_LEARNERS)
  const step = events.length / MAX_CALLS
  const chosen = new Set(Array.from({ length: MAX_CALLS }, (_, at) => events[Math.floor(at * step)]))
  return marks.filter(({ event }) => chosen.has(event.toLowerCase())).slice(0, MAX_CALLS * MAX_LEARNERS)
}
