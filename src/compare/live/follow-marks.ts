import { type Clock, waitFor } from '../../clock.ts'
import { toFlatRecord } from '../../translate/index.ts'
import type { V3Record } from '../../v3/record.ts'
import { verdictOnly } from '../diff/findings.ts'
import { isSameMoment, type Members, nanosBetween } from '../diff/values.ts'
import { type Comparison, isEqual } from '../verdict.ts'
import type { SideAnswer } from './ask-sides.ts'
import type { SkipReason } from './exchange.ts'
import { idOfMark, markKey, type MarkPlace, marksOf, readBody, recordedOn } from './marks.ts'

/** A mark that one side accepted and that the other side is expected to show. */
export interface FollowedMark {
  readonly learner: string
  readonly event: string
  /** The values in flat form as they were posted to V3, or as they would have been posted if V2 served the write. */
  readonly sent: Members
  /** The mark in the reply of the side that served the write. Members that the reply lacks have the sent values. */
  readonly mark: Members
  readonly place: MarkPlace
}

/** Describes a mark to follow. `answered` is the mark in the reply of the serving side, empty if the reply contains no record. */
export function toFollowed(record: V3Record, answered: Members, place: MarkPlace): FollowedMark {
  const [learner, event] = [record.Attendee.ExternalID, record.Event.ExternalID]
  const sent = { ...toFlatRecord(record) }
  return { learner, event, sent, mark: { ...sent, ...answered }, place }
}

/** Reads from one side the rows that match a V2 `$filter`. */
export type AskMarks = (filter: string) => Promise<SideAnswer>

interface ServingSide {
  readonly ask: AskMarks
  /** The time at which the write was received, in milliseconds of the clock of the comparison. */
  readonly receivedMs: number
  /**
   * A stored mark whose time is later than the time in the reply by less than this number of milliseconds does not count as a newer write.
   */
  readonly storedWithinMs: number
  /** Returns true if a later time of `seen` proves another write, and false if `seen` is the followed mark with another time. */
  readonly isCorrection: (followed: FollowedMark, seen: Members) => boolean
}

interface FollowOptions {
  readonly ask: AskMarks
  readonly compare: (followed: FollowedMark, seen: Members | undefined) => Comparison
  readonly clock: Clock
  /** The time in milliseconds within which the other side must show each mark with the accepted values. */
  readonly settleMs: number
  /** The time at which the client received the reply, in milliseconds of `clock`. */
  readonly sinceMs: number
  readonly stopped: AbortSignal
  /**
   * The side that served the write, which is asked whether it also has a newer version. If `undefined`, a newer version counts as a
   * difference.
   */
  readonly serving?: ServingSide
}

export interface FollowResult {
  readonly compared: readonly JudgedMark[]
  readonly delaysMs: readonly number[]
  /** The reason why nothing was compared, or `undefined` if a mark was compared. */
  readonly skipped: SkipReason | undefined
}

export interface JudgedMark {
  readonly followed: FollowedMark
  readonly comparison: Comparison
  /** The mark as the other side returned it, or `undefined` if that side lacks the mark or the result is unknown. */
  readonly shown: Members | undefined
}

/** The maximum number of learners in one filter. More learners would exceed the request line that gateways accept. */
const MAX_LEARNERS = 25
/** The maximum number of requests for one batch. If a batch has more events, `sampled` chooses some of them. */
const MAX_CALLS = 20
const FIRST_PAUSE_MS = 500
/** The assumed maximum difference between the clocks of the service and the instances. */
const CLOCK_MS = 1_000

interface PendingMark {
  readonly followed: FollowedMark
  /** The mark as last read, without its histories. Histories grow with every write, so they are compared at once and not stored. */
  seen: Members | undefined
  comparison: Comparison | undefined
  isSettled: boolean
}

/**
 * Reads marks on the other side, with doubling pauses, until each mark is visible as it was accepted or `settleMs` has passed. The first
 * read after `settleMs` decides, and a mark is `unknown` if that read fails. Marks that a newer write through this instance replaced are
 * left out. Marks with a newer version on both sides are `unknown`.
 */
export async function followMarks(
  marks: readonly FollowedMark[],
  options: FollowOptions,
): Promise<FollowResult> {
  const { clock, settleMs, sinceMs, stopped, serving } = options
  const compared: JudgedMark[] = []
  const delaysMs: number[] = []
  let pending = marks.map(toPending)
  let unsent: SkipReason | undefined
  const endMs = clock.nowMs() + settleMs
  const isStopped = (): boolean => stopped.aborted
  for (let pauseMs = FIRST_PAUSE_MS; pending.length > 0 && !isStopped(); pauseMs *= 2) {
    const isLast = clock.nowMs() >= endMs
    pending = pending.filter(({ followed }) => !followed.place.isSuperseded())
    for (const group of groupsOf(pending)) {
      unsent = await readGroup(group, options)
      if (unsent !== undefined || isStopped()) break
      for (const own of group) own.isSettled = isLast
    }
    const atMs = clock.nowMs()
    for (const own of pending) {
      if (!isEqual(own.comparison)) continue
      compared.push(toJudged(own))
      delaysMs.push(atMs - sinceMs)
    }
    pending = pending.filter(({ comparison }) => !isEqual(comparison))
    if (unsent !== undefined || isLast || isStopped() || pending.length === 0) break
    await waitFor(Math.max(0, Math.min(pauseMs, endMs - atMs)), clock, stopped)
  }
  const remaining = pending.filter(
    ({ comparison, followed }) => comparison !== undefined && !followed.place.isSuperseded(),
  )
  const settled = remaining.filter(({ isSettled }) => isSettled)
  compared.push(
    ...(serving === undefined ? settled.map(toJudged) : await findReplaced(settled, serving, clock)),
  )
  compared.push(...remaining.filter(({ isSettled }) => !isSettled).map(toUnknown))
  const reason = isStopped() ? 'stopped' : (unsent ?? 'superseded')
  return { compared, delaysMs, skipped: compared.length === 0 ? reason : undefined }
}

const toPending = (followed: FollowedMark): PendingMark => ({
  followed,
  seen: undefined,
  comparison: undefined,
  isSettled: false,
})

const toUnknown = ({ followed }: PendingMark): JudgedMark => ({
  followed,
  comparison: verdictOnly('unknown'),
  shown: undefined,
})

const toJudged = ({ followed, seen, comparison = verdictOnly('unknown') }: PendingMark): JudgedMark => ({
  followed,
  comparison,
  shown: seen,
})

/** Reads the marks of one group, all of one event, on the other side. Returns the reason if no request was sent. */
async function readGroup(
  group: readonly PendingMark[],
  { ask, compare }: FollowOptions,
): Promise<SkipReason | undefined> {
  const read = await readMarks(ask, group)
  if (read.kind === 'unsent') return read.reason
  for (const own of group) {
    const seen = read.kind === 'read' ? read.seenOf(own.followed) : undefined
    own.seen = seen && { ...seen, AttendanceHistorys: undefined }
    own.comparison = read.kind === 'read' ? compare(own.followed, seen) : verdictOnly('unknown')
  }
  return undefined
}

/**
 * Judges marks that another instance, or a client that bypasses the adapter, may have replaced. A mark is `unknown` if the side that served
 * the write also returns a newer version, or cannot be read. A newer version that only the other side returns is a difference.
 */
async function findReplaced(
  marks: readonly PendingMark[],
  serving: ServingSide,
  clock: Clock,
): Promise<readonly JudgedMark[]> {
  const isReplacedBy = (followed: FollowedMark, seen: Members | undefined): boolean =>
    isNewer(followed, seen, clock.nowMs() - serving.receivedMs, serving)
  const isCandidate = ({ followed, seen }: PendingMark): boolean => isReplacedBy(followed, seen)
  const candidates = marks.filter(isCandidate)
  const judged = marks.filter((mark) => !candidates.includes(mark)).map(toJudged)
  for (const group of groupsOf(candidates)) {
    const served = await readMarks(serving.ask, group)
    for (const own of group) {
      const { followed } = own
      if (followed.place.isSuperseded()) continue
      const isReplaced = served.kind !== 'read' || isReplacedBy(followed, served.seenOf(followed))
      judged.push(isReplaced ? toUnknown(own) : toJudged(own))
    }
  }
  return judged
}

/**
 * Returns true if another write replaced the followed mark: `seen` has a later time that is not in the future, and the precision of the
 * times does not explain the difference. If a time is missing, the result is true if `seen` has another id.
 */
function isNewer(
  followed: FollowedMark,
  seen: Members | undefined,
  seenAfterMs: number,
  { isCorrection, storedWithinMs }: ServingSide,
): boolean {
  const id = idOfMark(followed.mark)
  // Without the id from the reply, a newer mark cannot be recognised.
  if (seen === undefined || id === undefined || !isCorrection(followed, seen)) return false
  const [from, to] = [recordedOn(followed.mark), recordedOn(seen)]
  if (from === undefined || to === undefined) return ![undefined, id].includes(idOfMark(seen))
  const laterMs = nanosBetween(from, to) / 1_000_000
  return !isSameMoment(from, to) && laterMs >= storedWithinMs && laterMs <= seenAfterMs + CLOCK_MS
}

type MarksRead =
  | { readonly kind: 'read'; readonly seenOf: (followed: FollowedMark) => Members | undefined }
  | Exclude<SideAnswer, { readonly kind: 'answered' }>

async function readMarks(
  ask: AskMarks,
  group: readonly { readonly followed: FollowedMark }[],
): Promise<MarksRead> {
  const answer = await ask(filterOf(group.map(({ followed }) => followed)))
  if (answer.kind !== 'answered') return answer
  const rows = answer.status < 300 ? marksOf(readBody(answer.text)) : undefined
  if (rows === undefined) return { kind: 'unknown' }
  const byKey = Map.groupBy(rows, markKey)
  return {
    kind: 'read',
    // If a learner has several marks at the event, the mark with the same id counts, or else the last mark.
    seenOf: ({ learner, event, mark }) => {
      const own = byKey.get(`${learner} ${event}`.toLowerCase()) ?? []
      const id = idOfMark(mark)
      return own.find((row) => id !== undefined && idOfMark(row) === id) ?? own.at(-1)
    },
  }
}

function filterOf(marks: readonly FollowedMark[]): string {
  const event = `AttendableEvent eq ${marks[0]?.event ?? ''}`
  const learners = marks.map(({ learner }) => `Learner eq ${learner}`)
  return `${event} and ${learners.length === 1 ? learners.join('') : `(${learners.join(' or ')})`}`
}

function groupsOf(marks: readonly PendingMark[]): readonly (readonly PendingMark[])[] {
  const byEvent = Map.groupBy(marks, ({ followed }) => followed.event.toLowerCase())
  return [...byEvent.values()].flatMap((own) =>
    Array.from({ length: Math.ceil(own.length / MAX_LEARNERS) }, (_, at) =>
      own.slice(at * MAX_LEARNERS, (at + 1) * MAX_LEARNERS),
    ),
  )
}

/**
 * Limits the marks that are followed for one batch. If there are too many events, it takes evenly spaced events, whatever their marks are.
 */
export function sampled(marks: readonly FollowedMark[]): readonly FollowedMark[] {
  const byEvent = [...Map.groupBy(marks, ({ event }) => event.toLowerCase()).values()]
  const count = Math.min(MAX_CALLS, byEvent.length)
  const chosen = Array.from(
    { length: count },
    (_, at) => byEvent[Math.floor((at * byEvent.length) / count)] ?? [],
  )
  return chosen.flat().slice(0, MAX_CALLS * MAX_LEARNERS)
}
