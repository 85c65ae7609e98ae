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
  /** The values that were posted to the side that accepted the mark, or that would be posted to V3. */
  readonly sent: Members
  /** The mark as the serving side returned it, with the sent values for members that the reply does not have. */
  readonly mark: Members
  readonly place: MarkPlace
}

/** `answered` is the mark in the reply of the serving side, which is empty if the reply has no record. */
export function toFollowed(record: V3Record, answered: Members, place: MarkPlace): FollowedMark {
  const [learner, event] = [record.Attendee.ExternalID, record.Event.ExternalID]
  const sent = { ...toFlatRecord(record) }
  return { learner, event, sent, mark: { ...sent, ...answered }, place }
}

/** Asks one side for the rows of a V2 `$filter`. */
export type AskMarks = (filter: string) => Promise<SideAnswer>

interface ServingSide {
  readonly ask: AskMarks
  /** Measured by the clock of the comparison. */
  readonly receivedMs: number
  /** The time by which the stored time of a mark may exceed that in the reply without proving a newer write. */
  readonly storedWithinMs: number
  /** Returns false if the shown mark has the same content, so that its later time alone does not prove another write. */
  readonly isCorrection: (followed: FollowedMark, seen: Members) => boolean
}

interface FollowOptions {
  readonly ask: AskMarks
  readonly compare: (followed: FollowedMark, seen: Members | undefined) => Comparison
  readonly clock: Clock
  /** How long a mark may take to become visible, and a newer mark to become equal on both sides. */
  readonly settleMs: number
  /** When the client had the reply, by `clock`. */
  readonly sinceMs: number
  readonly stopped: AbortSignal
  /** The serving side, asked about marks of which the other side shows a newer version. If `undefined`, such marks count as different. */
  readonly serving?: ServingSide
}

export interface FollowResult {
  readonly compared: readonly JudgedMark[]
  readonly delaysMs: readonly number[]
  /** Set if nothing was compared. */
  readonly skipped: SkipReason | undefined
}

export interface JudgedMark {
  readonly followed: FollowedMark
  readonly comparison: Comparison
  /** The mark that the other side shows, or `undefined` if it shows none or the result is unknown. */
  readonly shown: Members | undefined
}

/** The maximum per call, so that gateways accept the length of the request line. */
const MAX_LEARNERS = 25
/** A batch whose events need more calls is sampled. */
const MAX_CALLS = 20
const FIRST_PAUSE_MS = 500
/** The maximum difference between the clocks of the service and of the instances. */
const CLOCK_MS = 1_000

interface PendingMark {
  readonly followed: FollowedMark
  /** The mark as last shown, without its histories, which grow with every write and are only compared on arrival. */
  seen: Members | undefined
  comparison: Comparison | undefined
  /** True if the mark was read after the replication window. */
  isSettled: boolean
}

/**
 * Reads marks on the other side, with doubling pauses, until each is visible as accepted or `settleMs` has passed. The read after that time
 * decides; a mark that it cannot read is unknown. Marks that a newer write through this instance replaced are left out. Marks of which both
 * sides show a newer version are unknown.
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

/** Reads marks of one event on the other side. Returns the reason if no call left. */
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
 * Finds marks that a write through another instance, or past the adapter, replaced. They are unknown if the serving side shows a newer mark
 * too, or cannot be read. A newer mark that only the other side shows is a difference.
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
 * Returns true if another write replaced the followed mark: the shown mark was recorded later, by more than the precision of both times,
 * and not in the future. If a time is missing, the shown mark must have another id.
 */
function isNewer(
  followed: FollowedMark,
  seen: Members | undefined,
  seenAfterMs: number,
  { isCorrection, storedWithinMs }: ServingSide,
): boolean {
  const id = idOfMark(followed.mark)
  // Without a record in the reply, a newer mark cannot be recognised.
  if (seen === undefined || id === undefined || !isCorrection(followed, seen)) return false
  const [from, to] = [recordedOn(followed.mark), recordedOn(seen)]
  if (from === undefined || to === undefined) return ![undefined, id].includes(idOfMark(seen))
  const laterMs = nanosBetween(from, to) / 1_000_000
  return !isSameMoment(from, to) && laterMs >= storedWithinMs && laterMs <= seenAfterMs + CLOCK_MS
}

type MarksRead =
  | { readonly kind: 'read'; readonly seenOf: (followed: FollowedMark) => Members | undefined }
  | Exclude<SideAnswer, { readonly kind: 'answered' }>

/** Reads marks of one event, at most `MAX_LEARNERS`. */
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
    // Of several marks of one learner and event, take the one with the same id, else the last.
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

/** Limits the marks that are followed for one batch. Of too many events, evenly spaced ones are chosen, regardless of their marks. */
export function sampled(marks: readonly FollowedMark[]): readonly FollowedMark[] {
  const byEvent = [...Map.groupBy(marks, ({ event }) => event.toLowerCase()).values()]
  const count = Math.min(MAX_CALLS, byEvent.length)
  const chosen = Array.from(
    { length: count },
    (_, at) => byEvent[Math.floor((at * byEvent.length) / count)] ?? [],
  )
  return chosen.flat().slice(0, MAX_CALLS * MAX_LEARNERS)
}
