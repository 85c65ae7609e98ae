import { type Clock, waitFor } from '../../clock.ts'
import { plainly } from '../diff/findings.ts'
import { isSameMoment, type Members, nanosBetween } from '../diff/values.ts'
import { type Comparison, isEqual } from '../verdict.ts'
import type { SideAnswer } from './ask-sides.ts'
import type { SkipReason } from './exchange.ts'
import { idOfMark, markKey, type MarkPlace, marksOf, readBody, recordedOn } from './marks.ts'

/** A mark that one side has accepted, and that the other side is to show. */
export interface FollowedMark {
  readonly learner: string
  readonly event: string
  /** As the side that served it says, or as it was sent. */
  readonly mark: Members
  readonly place: MarkPlace
}

/** Asks a side for the rows of a V2 `$filter`. */
export type AskMarks = (filter: string) => Promise<SideAnswer>

/** The side that served the marks. */
interface ServingSide {
  readonly ask: AskMarks
  /** When the write was received, by the clock. */
  readonly receivedMs: number
  /** It may have stored a mark this much later than its reply says. */
  readonly storedWithinMs: number
  /** False: the content is that of the followed mark, and a later time alone is not a sign of another write. */
  readonly isCorrection: (followed: FollowedMark, seen: Members) => boolean
}

interface FollowOptions {
  /** Asks the other side. */
  readonly ask: AskMarks
  readonly compare: (followed: FollowedMark, seen: Members | undefined) => Comparison
  readonly clock: Clock
  /** How long a mark may take to be seen, and a newer one to be the same on both sides. */
  readonly settleMs: number
  /** When the first side had answered, by `clock`. */
  readonly sinceMs: number
  readonly stopped: AbortSignal
  /** Asked about marks of which the other side shows a newer one; undefined: it cannot be, and they count as different. */
  readonly serving?: ServingSide
}

/** The end of each mark that was followed to it. */
export interface FollowResult {
  readonly compared: readonly JudgedMark[]
  readonly delaysMs: readonly number[]
  /** Set where nothing was compared. */
  readonly skipped: SkipReason | undefined
}

interface JudgedMark {
  readonly followed: FollowedMark
  readonly comparison: Comparison
}

/** Learners in one call: the line of the request stays short enough for gateways. */
const MAX_LEARNERS = 25
/** Calls of one round: a batch over many events is sampled. */
const MAX_CALLS = 20
const FIRST_PAUSE_MS = 500
/** How far the clocks of the service and of the instances may be apart. */
const CLOCK_MS = 1_000

/** A mark that is not yet, or not as it was accepted, on the other side. */
interface OpenMark {
  readonly followed: FollowedMark
  /** As the other side has shown it last, without its histories: they grow with each write of a mark, and are compared at once. */
  seen: Members | undefined
  /** Time from the receipt of the write until the other side first showed this. */
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
  const compared: JudgedMark[] = []
  const delaysMs: number[] = []
  let open = marks.map(toOpen)
  let unsent: SkipReason | undefined
  const endMs = clock.nowMs() + settleMs
  const isStopped = (): boolean => stopped.aborted
  for (let pauseMs = FIRST_PAUSE_MS; open.length > 0 && !isStopped(); pauseMs *= 2) {
    const isLast = clock.nowMs() >= endMs
    open = open.filter(({ followed }) => !followed.place.isSuperseded())
    for (const group of groupsOf(open)) {
      unsent = await readGroup(group, options)
      if (unsent !== undefined || isStopped()) break
      for (const own of group) own.isSettled = isLast
    }
    const atMs = clock.nowMs()
    for (const { followed, comparison } of open) {
      if (comparison === undefined || !isEqual(comparison)) continue
      compared.push({ followed, comparison })
      delaysMs.push(atMs - sinceMs)
    }
    open = open.filter(({ comparison }) => !isEqual(comparison))
    if (unsent !== undefined || isLast || isStopped() || open.length === 0) break
    await waitFor(Math.max(0, Math.min(pauseMs, endMs - atMs)), clock, stopped)
  }
  const left = open.filter(
    ({ comparison, followed }) => comparison !== undefined && !followed.place.isSuperseded(),
  )
  const settled = left.filter(({ isSettled }) => isSettled)
  compared.push(
    ...(serving === undefined ? settled.map(toJudged) : await leaveNewer(settled, serving, options)),
  )
  compared.push(...left.filter(({ isSettled }) => !isSettled).map(toUnknown))
  const reason = isStopped() ? 'stopped' : (unsent ?? 'superseded')
  return { compared, delaysMs, skipped: compared.length === 0 ? reason : undefined }
}

const toOpen = (followed: FollowedMark): OpenMark => ({
  followed,
  seen: undefined,
  seenAfterMs: 0,
  comparison: undefined,
  isSettled: false,
})

const toUnknown = ({ followed }: OpenMark): JudgedMark => ({ followed, comparison: plainly('unknown') })

const toJudged = ({ followed, comparison = plainly('unknown') }: OpenMark): JudgedMark => ({
  followed,
  comparison,
})

/** Reads marks of one event on the other side; returns why no call left, where none did. */
async function readGroup(
  group: readonly OpenMark[],
  { ask, compare, clock, serving }: FollowOptions,
): Promise<SkipReason | undefined> {
  const read = await readMarks(ask, group)
  if (read.kind === 'unsent') return read.reason
  for (const own of group) {
    const seen = read.kind === 'read' ? read.seenOf(own.followed) : undefined
    if (seen?.['RecordedOn'] !== own.seen?.['RecordedOn'])
      own.seenAfterMs = clock.nowMs() - (serving?.receivedMs ?? 0)
    own.seen = withoutHistories(seen)
    own.comparison = read.kind === 'read' ? compare(own.followed, seen) : plainly('unknown')
  }
  return undefined
}

/**
 * Leaves out the marks that were superseded by a write which this instance has not seen: it came through another instance, or past the adapter. A
 * mark is superseded only where both sides show one and the same newer mark: what one side alone shows as newer is a difference, and so is what
 * they show otherwise after `settleMs`. Where the serving side cannot be read, the mark is unknown.
 */
async function leaveNewer(
  marks: readonly OpenMark[],
  serving: ServingSide,
  { ask, compare, clock, settleMs, stopped }: FollowOptions,
): Promise<readonly JudgedMark[]> {
  const isCandidate = ({ followed, seen, seenAfterMs }: OpenMark): boolean =>
    isNewer(followed, seen, seenAfterMs, serving)
  const judged = marks.filter((mark) => !isCandidate(mark)).map(toJudged)
  let open = marks.filter(isCandidate)
  const endMs = clock.nowMs() + settleMs
  for (let pauseMs = FIRST_PAUSE_MS; open.length > 0; pauseMs *= 2) {
    const isLast = clock.nowMs() >= endMs || stopped.aborted
    const again: OpenMark[] = []
    for (const group of groupsOf(open)) {
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
    open = []
    for (const group of groupsOf(again)) {
      const other = await readMarks(ask, group)
      if (other.kind === 'read')
        open.push(...group.map((own) => ({ ...own, seen: withoutHistories(other.seenOf(own.followed)) })))
      else judged.push(...group.map(toUnknown))
    }
  }
  return judged
}

/**
 * True for a mark that another write has put in the place of the followed one: recorded later, beyond the precision of both times, and not in what
 * was the future when it was seen. Without these times it has another id.
 */
function isNewer(
  followed: FollowedMark,
  seen: Members | undefined,
  seenAfterMs: number,
  { isCorrection, storedWithinMs }: ServingSide,
): boolean {
  const id = idOfMark(followed.mark)
  // A reply without a record says nothing that a newer mark could be told by.
  if (seen === undefined || id === undefined || !isCorrection(followed, seen)) return false
  const [from, to] = [recordedOn(followed.mark), recordedOn(seen)]
  if (from === undefined || to === undefined) return ![undefined, id].includes(idOfMark(seen))
  const laterMs = nanosBetween(from, to) / 1_000_000
  return !isSameMoment(from, to) && laterMs >= storedWithinMs && laterMs <= seenAfterMs + CLOCK_MS
}

function withoutHistories<Mark extends Members | undefined>(mark: Mark): Mark {
  return mark && { ...mark, AttendanceHistorys: undefined }
}

/** What a side shows of some marks, where it could be read. */
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
    // Of several marks of one learner and event the one with the same id, else the last.
    seenOf: ({ learner, event, mark }) => {
      const own = byKey.get(`${learner} ${event}`.toLowerCase()) ?? []
      const id = idOfMark(mark)
      return own.find((row) => id !== undefined && idOfMark(row) === id) ?? own.at(-1)
    },
  }
}

/** The V2 filter of marks of one event. */
function filterOf(marks: readonly FollowedMark[]): string {
  const event = `AttendableEvent eq ${marks[0]?.event ?? ''}`
  const learners = marks.map(({ learner }) => `Learner eq ${learner}`)
  return `${event} and ${learners.length === 1 ? learners.join('') : `(${learners.join(' or ')})`}`
}

/** Marks in groups of one event that are read together. */
function groupsOf(marks: readonly OpenMark[]): readonly (readonly OpenMark[])[] {
  const byEvent = Map.groupBy(marks, ({ followed }) => followed.event.toLowerCase())
  return [...byEvent.values()].flatMap((own) =>
    Array.from({ length: Math.ceil(own.length / MAX_LEARNERS) }, (_, at) =>
      own.slice(at * MAX_LEARNERS, (at + 1) * MAX_LEARNERS),
    ),
  )
}

/** As many marks as may be followed for one batch. Every nth event of one with too many: which ones does not depend on their marks. */
export function sampled(marks: readonly FollowedMark[]): readonly FollowedMark[] {
  const byEvent = [...Map.groupBy(marks, ({ event }) => event.toLowerCase()).values()]
  const count = Math.min(MAX_CALLS, byEvent.length)
  const chosen = Array.from(
    { length: count },
    (_, at) => byEvent[Math.floor((at * byEvent.length) / count)] ?? [],
  )
  return chosen.flat().slice(0, MAX_CALLS * MAX_LEARNERS)
}
