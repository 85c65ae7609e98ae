import { type Clock, waitFor } from '../../clock.ts'
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
  /** The mark as the serving side returned it, or as the client sent it. */
  readonly mark: Members
  readonly place: MarkPlace
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

interface JudgedMark {
  readonly followed: FollowedMark
  readonly comparison: Comparison
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
  /** The time from the receipt of the write until the other side first showed this version. */
  seenAfterMs: number
  comparison: Comparison | undefined
  /** True if the mark was read after the replication window. */
  isSettled: boolean
}

/**
 * Reads marks on the other side, with doubling pauses, until each is visible as accepted or `settleMs` has passed. The read after that time
 * decides; a mark that it cannot read is unknown. Marks that a newer mark of the same learner and event replaced are left out, whether this
 * instance observed the newer write or both sides show it.
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
    for (const { followed, comparison } of pending) {
      if (comparison === undefined || !isEqual(comparison)) continue
      compared.push({ followed, comparison })
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
    ...(serving === undefined ? settled.map(toJudged) : await omitReplaced(settled, serving, options)),
  )
  compared.push(...remaining.filter(({ isSettled }) => !isSettled).map(toUnknown))
  const reason = isStopped() ? 'stopped' : (unsent ?? 'superseded')
  return { compared, delaysMs, skipped: compared.length === 0 ? reason : undefined }
}

const toPending = (followed: FollowedMark): PendingMark => ({
  followed,
  seen: undefined,
  seenAfterMs: 0,
  comparison: undefined,
  isSettled: false,
})

const toUnknown = ({ followed }: PendingMark): JudgedMark => ({
  followed,
  comparison: verdictOnly('unknown'),
})

const toJudged = ({ followed, comparison = verdictOnly('unknown') }: PendingMark): JudgedMark => ({
  followed,
  comparison,
})

/** Reads marks of one event on the other side. Returns the reason if no call left. */
async function readGroup(
  group: readonly PendingMark[],
  { ask, compare, clock, serving }: FollowOptions,
): Promise<SkipReason | undefined> {
  const read = await readMarks(ask, group)
  if (read.kind === 'unsent') return read.reason
  for (const own of group) {
    const seen = read.kind === 'read' ? read.seenOf(own.followed) : undefined
    if (seen?.['RecordedOn'] !== own.seen?.['RecordedOn'])
      own.seenAfterMs = clock.nowMs() - (serving?.receivedMs ?? 0)
    own.seen = withoutHistories(seen)
    own.comparison = read.kind === 'read' ? compare(own.followed, seen) : verdictOnly('unknown')
  }
  return undefined
}

/**
 * Leaves out marks that a write through another instance, or past the adapter, replaced. A mark counts as replaced only if both sides show
 * the same newer mark within `settleMs`. If only one side shows a newer mark, or the two versions differ, the result is a difference. If
 * the serving side cannot be read, the mark is unknown.
 */
async function omitReplaced(
  marks: readonly PendingMark[],
  serving: ServingSide,
  { ask, compare, clock, settleMs, stopped }: FollowOptions,
): Promise<readonly JudgedMark[]> {
  const isCandidate = ({ followed, seen, seenAfterMs }: PendingMark): boolean =>
    isNewer(followed, seen, seenAfterMs, serving)
  const judged = marks.filter((mark) => !isCandidate(mark)).map(toJudged)
  let pending = marks.filter(isCandidate)
  const endMs = clock.nowMs() + settleMs
  for (let pauseMs = FIRST_PAUSE_MS; pending.length > 0; pauseMs *= 2) {
    const isLast = clock.nowMs() >= endMs || stopped.aborted
    const again: PendingMark[] = []
    for (const group of groupsOf(pending)) {
      const served = await readMarks(serving.ask, group)
      for (const own of group) {
        const { followed } = own
        if (followed.place.isSuperseded()) continue
        const mark = served.kind === 'read' ? served.seenOf(followed) : undefined
        if (served.kind !== 'read') judged.push(toUnknown(own))
        else if (mark === undefined || !isNewer(followed, mark, clock.nowMs() - serving.receivedMs, serving))
          judged.push(toJudged(own))
        else {
          const comparison = compare({ ...followed, mark: withoutHistories(mark) }, own.seen)
          if (isEqual(comparison)) continue
          if (isLast) judged.push({ followed, comparison })
          else again.push(own)
        }
      }
    }
    if (again.length > 0) await waitFor(Math.max(0, Math.min(pauseMs, endMs - clock.nowMs())), clock, stopped)
    pending = []
    for (const group of groupsOf(again)) {
      const other = await readMarks(ask, group)
      if (other.kind === 'read')
        pending.push(...group.map((own) => ({ ...own, seen: withoutHistories(other.seenOf(own.followed)) })))
      else judged.push(...group.map(toUnknown))
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

function withoutHistories<Mark extends Members | undefined>(mark: Mark): Mark {
  return mark && { ...mark, AttendanceHistorys: undefined }
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
