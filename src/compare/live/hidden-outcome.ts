import type { Clock } from '../../clock.ts'
import type { Client } from '../../partners/partner.ts'
import { isSameGuid, momentOf } from '../diff/values.ts'
import type { AskSide } from './ask-sides.ts'
import { type FlatMark, markKey, marksOf } from './flat-mark.ts'
import { filterOf, type FollowedMark } from './read-marks.ts'
import type { OfferedWrite } from './offered-exchange.ts'
import { readBody } from './reply-bodies.ts'
import { waitFor } from '../../clock/wait-for.ts'

/** What V2 did with the records of a batch whose reply shows no outcomes (batch-wire 3). */
export type HiddenOutcome = 'kept' | 'dropped'

/** Takes what is found of such batches. */
export interface HiddenOutcomes {
  /** Whether marks of one more batch of the partner are to be read. */
  isWanted(partner: string): boolean
  found(partner: string, outcome: HiddenOutcome): void
}

export interface HiddenOutcomeOptions {
  /** Asks V3. */
  readonly ask: AskSide
  readonly clock: Clock
  readonly stopped: AbortSignal
}

/** Marks of one event, which one call shows. */
const MAX_MARKS = 25
/** Before the first read: a client that repeats its batch with the right ids has done so by then. */
const FIRST_PAUSE_MS = 2_000
/** Time for calls besides that for replication. */
const CALLS_MS = 60_000
/** How far the clocks of the service and of the adapter may be apart. */
const CLOCK_MS = 2_000

/**
 * Reads marks of the batch on V3, until one shows that V2 kept it or `settleMs` is over. Undefined: they show neither. Left out are marks with an
 * earlier or a newer write, those that stood with the same content before, and those whose learner and event V3 does not have.
 */
export async function findHiddenOutcome(
  { client, receivedMs, repliedMs }: Pick<OfferedWrite, 'client' | 'receivedMs' | 'repliedMs'>,
  marks: readonly FollowedMark[],
  { ask, clock, stopped }: HiddenOutcomeOptions,
): Promise<HiddenOutcome | undefined> {
  const endMs = clock.nowMs() + client.partner.compare.settleMs
  const span = { fromMs: receivedMs - CLOCK_MS, toMs: repliedMs + CLOCK_MS }
  const read = { client: toWholeReader(client), path, kind: 'filter', accept: '', prefer: '' } as const
  let open = sampled(marks)
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs *= 2) {
    if (open.length === 0) return undefined
    await waitFor(Math.max(0, Math.min(pauseMs, endMs - clock.nowMs())), clock, stopped)
    const isLast = clock.nowMs() >= endMs
    const query = `$filter=${encodeURIComponent(filterOf(open))}`
    const answer = await ask({ ...read, query }, endMs + CALLS_MS - clock.nowMs())
    if (answer.kind === 'unsent' || stopped.aborted) return undefined
    const rows =
      answer.kind === 'answered' && answer.status < 300 ? marksOf(readBody(answer.text)) : undefined
    open = open.filter(({ place }) => !place.isSuperseded())
    const outcome = judgeMarks(open, rows ?? [], span)
    if (outcome === 'kept' || isLast) return outcome
  }
}

const path = '/V2/Attendance/AttendanceRecords'

/** Marks of one event without an earlier write, which might have had the same content. */
function sampled(marks: readonly FollowedMark[]): readonly FollowedMark[] {
  const first = marks.filter(({ place }) => !place.isCorrection && !place.isSuperseded())
  const event = first[0]?.event
  return first.filter((mark) => mark.event === event).slice(0, MAX_MARKS)
}

/** Shows the rows of sessions without a mark too: V3 has one for each session of a learner (service.md 1.2). */
function toWholeReader(client: Client): Client {
  const { partner } = client
  const reads = { ...partner.reads, needsRecordedBy: false, unmarkedCodes: [], histories: false }
  return { ...client, partner: { ...partner, reads, unmarkedLetters: [] } }
}

/** The time in which V2 has recorded what it kept, in milliseconds since the epoch. */
interface Span {
  readonly fromMs: number
  readonly toMs: number
}

/** One mark that was kept is enough: V2 may have refused others. */
function judgeMarks(
  sent: readonly FollowedMark[],
  rows: readonly FlatMark[],
  span: Span,
): HiddenOutcome | undefined {
  const byKey = Map.groupBy(rows, (row) => markKey(row))
  const outcomes = sent.map(({ learner, event, mark }) =>
    judgeMark(mark, byKey.get(`${learner} ${event}`.toLowerCase()) ?? [], span),
  )
  return outcomes.find((outcome) => outcome === 'kept') ?? outcomes.find((outcome) => outcome === 'dropped')
}

function judgeMark(
  mark: FlatMark,
  rows: readonly FlatMark[],
  { fromMs, toMs }: Span,
): HiddenOutcome | undefined {
  const same = rows.filter((row) => isSameAttendance(row, mark)).map(recordedMs)
  if (same.some((ms) => ms >= fromMs && ms <= toMs)) return 'kept'
  // It may have stood there before; without a row the session is none of the learner's.
  if (same.length > 0 || rows.length === 0) return undefined
  return rows.every((row) => row['RecordedOn'] === null || recordedMs(row) < fromMs) ? 'dropped' : undefined
}

/** Minutes and comment are left out: the service may change them. */
function isSameAttendance(row: FlatMark, mark: FlatMark): boolean {
  return (
    row['Present'] === mark['Present'] &&
    row['Absent'] === mark['Absent'] &&
    isSameGuid(String(row['SchoolAttendanceCode']), String(mark['SchoolAttendanceCode']))
  )
}

/** NaN: it is not a time. */
function recordedMs({ RecordedOn }: FlatMark): number {
  const moment = typeof RecordedOn === 'string' ? momentOf(RecordedOn) : undefined
  return moment === undefined ? NaN : moment.seconds * 1_000 + moment.nanos / 1_000_000
}
