import type { Clock } from '../../clock.ts'
import type { Comparison } from '../verdict.ts'
import type { SideAnswer, UnsentReason } from './ask-sides.ts'
import { plainly } from './findings.ts'
import { type FlatMark, markKey, marksOf } from './flat-mark.ts'
import type { MarkPlace } from './latest-marks.ts'
import { idOfMark, readBody } from './reply-bodies.ts'
import type { SkipReason } from './skip-reason.ts'

/** A mark that one side has accepted, and that the other side is to show. */
export interface FollowedMark {
  readonly learner: string
  readonly event: string
  /** As the side that served it says, or as it was sent. */
  readonly mark: FlatMark
  readonly place: MarkPlace
}

export interface FollowOptions {
  /** The rows of a V2 `$filter`. */
  readonly ask: (filter: string) => Promise<SideAnswer>
  /** `seen`: as the side shows it that was asked. */
  readonly compare: (followed: FollowedMark, seen: FlatMark | undefined) => Comparison
  readonly clock: Clock
  /** How long the other side may take to show a mark. */
  readonly settleMs: number
  /** Time since the reply of the first side, by `clock`. */
  readonly sinceMs: number
  readonly stopped: AbortSignal
}

/** The end of each mark that was followed to it. */
export interface FollowResult {
  readonly compared: readonly { readonly followed: FollowedMark; readonly comparison: Comparison }[]
  readonly delaysMs: readonly number[]
  /** Set where nothing was compared. */
  readonly skipped: SkipReason | undefined
}

/** Learners in one call: the line of the request stays short enough for gateways. */
const MAX_LEARNERS = 25
/** Calls of one round: a batch over many events is sampled. */
const MAX_CALLS = 20
const FIRST_PAUSE_MS = 500

interface Open {
  readonly followed: FollowedMark
  comparison: Comparison | undefined
  /** Read once replication had had its time. */
  isSettled: boolean
}

/**
 * Reads marks on the other side until each is there as it was accepted, for the time that replication may take, with pauses that double. What
 * a read after that time shows counts; a mark that was not found and cannot be read then is unknown. A mark with a newer one of its learner and
 * event is left out.
 */
export async function followMarks(
  marks: readonly FollowedMark[],
  options: FollowOptions,
): Promise<FollowResult> {
  const { clock, settleMs, sinceMs, stopped } = options
  const compared: FollowResult['compared'][number][] = []
  const delaysMs: number[] = []
  let open = sampled(marks).map((followed): Open => ({ followed, comparison: undefined, isSettled: false }))
  let unsent: UnsentReason | undefined
  let pauseMs = FIRST_PAUSE_MS
  const endMs = clock.nowMs() + settleMs
  const isStopped = (): boolean => stopped.aborted
  while (open.length > 0 && !isStopped()) {
    const isLast = clock.nowMs() >= endMs
    open = open.filter(({ followed }) => !followed.place.isSuperseded())
    for (const group of groups(open)) {
      const answer = await options.ask(filterOf(group.map(({ followed }) => followed)))
      if (answer.kind === 'unsent') unsent = answer.reason
      if (answer.kind === 'unsent') break
      judgeGroup(group, answer, options)
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
  for (const { followed, comparison, isSettled } of open)
    if (comparison !== undefined && !followed.place.isSuperseded())
      compared.push({ followed, comparison: isSettled ? comparison : plainly('unknown') })
  const reason = isStopped() ? 'stopped' : (unsent ?? 'superseded')
  return { compared, delaysMs, skipped: compared.length === 0 ? reason : undefined }
}

const isFound = ({ verdict }: Comparison): boolean => verdict === 'same' || verdict === 'equivalent'

function judgeGroup(group: readonly Open[], answer: SideAnswer, { compare }: FollowOptions): void {
  const rows = answer.kind === 'answered' && answer.status < 300 ? marksOf(readBody(answer.text)) : undefined
  const byKey = Map.groupBy(rows ?? [], (row) => markKey(row) ?? '')
  for (const own of group) {
    const { learner, event } = own.followed
    const seen = standing(byKey.get(`${learner} ${event}`.toLowerCase()) ?? [], own.followed.mark)
    own.comparison = rows === undefined ? plainly('unknown') : compare(own.followed, seen)
  }
}

/** Of several marks of one learner and event the one with the same id, else the last. */
function standing(rows: readonly FlatMark[], mark: FlatMark): FlatMark | undefined {
  const id = idOfMark(mark)
  return rows.find((row) => id !== undefined && idOfMark(row) === id) ?? rows.at(-1)
}

function filterOf(marks: readonly FollowedMark[]): string {
  const event = `AttendableEvent eq ${marks[0]?.event ?? ''}`
  const learners = marks.map(({ learner }) => `Learner eq ${learner}`)
  return `${event} and ${learners.length === 1 ? learners.join('') : `(${learners.join(' or ')})`}`
}

/** Marks of one event that are read together. */
function groups(open: readonly Open[]): readonly (readonly Open[])[] {
  const byEvent = Map.groupBy(open, ({ followed }) => followed.event.toLowerCase())
  return [...byEvent.values()].flatMap((own) => {
    const count = Math.ceil(own.length / MAX_LEARNERS)
    return Array.from({ length: count }, (_, at) => own.slice(at * MAX_LEARNERS, (at + 1) * MAX_LEARNERS))
  })
}

/** Every nth event of a batch with too many: which ones does not depend on their marks. */
function sampled(marks: readonly FollowedMark[]): readonly FollowedMark[] {
  const events = [...new Set(marks.map(({ event }) => event.toLowerCase()))]
  if (events.length <= MAX_CALLS) return marks.slice(0, MAX_CALLS * MAX_LEARNERS)
  const step = events.length / MAX_CALLS
  const chosen = new Set(Array.from({ length: MAX_CALLS }, (_, at) => events[Math.floor(at * step)]))
  return marks.filter(({ event }) => chosen.has(event.toLowerCase())).slice(0, MAX_CALLS * MAX_LEARNERS)
}

/** Resolves after this time, or once the adapter stops. */
export function waitFor(ms: number, clock: Clock, stopped: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      cancel()
      stopped.removeEventListener('abort', end)
      resolve()
    }
    const cancel = clock.after(ms, end)
    stopped.addEventListener('abort', end)
  })
}
