import { type Clock, waitFor } from '../../clock.ts'
import type { Client } from '../../partners/partner.ts'
import type { Side } from '../../rollout/index.ts'
import { toFlatRecord } from '../../translate/index.ts'
import { compareMark, type OwnRules, plainly } from '../diff/index.ts'
import { isSameGuid } from '../diff/values.ts'
import type { Comparison } from '../verdict.ts'
import type { AskedRead, AskSide } from './ask-sides.ts'
import type { AcceptedMark } from './compare-reply.ts'
import type { CheckResult, OfferedServedWrite, OfferedWrite } from './exchange.ts'
import { type AskMarks, filterOf, type FollowedMark, followMarks, isFound, sampled } from './follow-marks.ts'
import {
  factsOf,
  type FlatMark,
  isObject,
  markKey,
  type MarkPlace,
  marksOf,
  readBody,
  recordedMs,
  unknownPlace,
  unwrapped,
} from './marks.ts'

export interface CheckOptions {
  readonly ask: Readonly<Record<Side, AskSide>>
  /** The partner's own. */
  readonly rules: OwnRules | undefined
  readonly clock: Clock
  /** When the client had the reply, by the clock. */
  readonly sinceMs: number
  readonly stopped: AbortSignal
}

/** Time for calls besides that for replication. */
const CALLS_MS = 60_000
const RECORDS_PATH = '/V2/Attendance/AttendanceRecords'

/** Members that a client does not send: where a reply has none either, nothing is known to set against them. */
const unsent = new Set([
  'ExternalID',
  'RecordedOn',
  'ChangeProcessName',
  'AttendableEventStart',
  'RecordedBy',
  'AttendanceHistorys',
])

/** `visible`: reads on V3 what V2 has accepted, and sets it against V2's own reply, or what was sent where that has no body. */
export function checkVisible(
  offered: OfferedWrite,
  accepted: readonly AcceptedMark[],
  options: CheckOptions,
): Promise<CheckResult> {
  return checkMarks(offered, accepted.map(toFollowed), options, (own, seen) =>
    compareAccepted(own, seen, options.rules),
  )
}

/** Sets a mark that V2 accepted against the one that V3 shows; undefined: it shows none. */
export function compareAccepted(
  own: FlatMark,
  seen: FlatMark | undefined,
  rules: OwnRules | undefined,
): Comparison {
  return seen === undefined ? plainly('onlyV2') : compareMark(own, seen, { rules, without: unknownOf(own) })
}

const unknownOf = (own: FlatMark): ReadonlySet<string> | undefined =>
  'ExternalID' in own ? undefined : unsent

/** `readBack`: reads on V2 what V3 has accepted, and sets it against the reply that the client got. */
export function checkReadBack(
  offered: OfferedServedWrite,
  places: readonly MarkPlace[],
  options: CheckOptions,
): Promise<CheckResult> {
  const marks = offered.records.map(({ record, part }, index) => {
    const body = unwrapped(readBody(part.json))
    const place = places[index] ?? unknownPlace
    return toFollowed({ record, mark: isObject(body) ? body : undefined, place })
  })
  return checkMarks(offered, marks, options, (own, seen) =>
    seen === undefined
      ? plainly('onlyV3')
      : compareMark(seen, own, { rules: options.rules, without: unknownOf(own) }),
  )
}

async function checkMarks(
  { client, served, path, receivedMs, repliedMs }: OfferedWrite | OfferedServedWrite,
  marks: readonly FollowedMark[],
  { ask, clock, sinceMs, stopped }: CheckOptions,
  compare: (own: FlatMark, seen: FlatMark | undefined) => Comparison,
): Promise<CheckResult> {
  if (marks.length === 0) return { kind: 'skipped', reason: 'empty' }
  const { settleMs } = client.partner.compare
  // A newer mark has the same time to be seen.
  const deadlineMs = clock.nowMs() + 2 * settleMs + CALLS_MS
  const paths = { v2: path.replace(/\/[^/]*\/?$/, '/AttendanceRecords'), v3: RECORDS_PATH }
  const askOn =
    (side: Side): AskMarks =>
    (filter) =>
      ask[side](toRead(client, paths[side], filter), deadlineMs - clock.nowMs())
  const { compared, delaysMs, skipped } = await followMarks(sampled(marks), {
    ask: askOn(served === 'v2' ? 'v3' : 'v2'),
    serving: {
      ask: askOn(served),
      receivedMs: sinceMs - (repliedMs - receivedMs),
      storedWithinMs: served === 'v2' ? 0 : repliedMs - receivedMs,
      // The journal knows a batch that comes again: V3 is sent no mark twice, and what it stores otherwise than it says is a difference.
      isCorrection: ({ mark }, seen) =>
        served === 'v2' || !isFound(compareMark(seen, mark, { without: unsent })),
    },
    compare: (followed, seen) => compare(followed.mark, seen),
    clock,
    settleMs,
    sinceMs,
    stopped,
  })
  if (skipped !== undefined) return { kind: 'skipped', reason: skipped }
  const records = compared.map(({ followed: { mark, place }, comparison }) => ({
    ...factsOf(mark, { isCorrection: place.isCorrection }),
    ...comparison,
  }))
  return { kind: 'compared', records, delaysMs }
}

const toRead = (client: Client, path: string, filter: string): AskedRead => ({
  client,
  kind: 'filter',
  path,
  query: `$filter=${encodeURIComponent(filter)}`,
  accept: '',
  prefer: '',
})

/** A record that was sent as a mark to be read, with what the side that served it says of it. */
export function toFollowed({ record, mark, place }: AcceptedMark): FollowedMark {
  const [learner, event] = [record.Attendee.ExternalID, record.Event.ExternalID]
  return { learner, event, mark: { ...toFlatRecord(record), ...mark }, place }
}

/** What V2 did with the records of a batch whose reply shows no outcomes (batch-wire 3). */
export type HiddenOutcome = 'kept' | 'dropped'

/** Marks of one event, which one call shows. */
const MAX_HIDDEN = 25
/** Before the first read: a client that repeats its batch with the right ids has done so by then. */
const FIRST_PAUSE_MS = 2_000
/** How far the clocks of the service and of the adapter may be apart. */
const CLOCK_MS = 2_000

/**
 * Reads marks of such a batch on V3, until one shows that V2 kept it or `settleMs` is over. Undefined: they show neither. Left out are marks with an
 * earlier or a newer write, those that stood with the same content before, and those whose learner and event V3 does not have.
 */
export async function findHiddenOutcome(
  { client, receivedMs, repliedMs }: Pick<OfferedWrite, 'client' | 'receivedMs' | 'repliedMs'>,
  hidden: readonly AcceptedMark[],
  { ask, clock, stopped }: Pick<CheckOptions, 'ask' | 'clock' | 'stopped'>,
): Promise<HiddenOutcome | undefined> {
  const endMs = clock.nowMs() + client.partner.compare.settleMs
  // Without an earlier write, which might have had the same content; and of one event.
  const first = hidden.filter(({ place }) => !place.isCorrection && !place.isSuperseded()).map(toFollowed)
  let open = first.filter(({ event }) => event === first[0]?.event).slice(0, MAX_HIDDEN)
  for (let pauseMs = FIRST_PAUSE_MS; open.length > 0; pauseMs *= 2) {
    await waitFor(Math.max(0, Math.min(pauseMs, endMs - clock.nowMs())), clock, stopped)
    const isLast = clock.nowMs() >= endMs
    const read = toRead(toWholeReader(client), RECORDS_PATH, filterOf(open))
    const answer = await ask.v3(read, endMs + CALLS_MS - clock.nowMs())
    if (answer.kind === 'unsent' || stopped.aborted) return undefined
    const isRead = answer.kind === 'answered' && answer.status < 300
    const rows = isRead ? marksOf(readBody(answer.text)) : undefined
    open = open.filter(({ place }) => !place.isSuperseded())
    const outcome = judgeHidden(open, rows ?? [], receivedMs - CLOCK_MS, repliedMs + CLOCK_MS)
    if (outcome === 'kept' || isLast) return outcome
  }
  return undefined
}

/** Shows the rows of sessions without a mark too: V3 has one for each session of a learner (service.md 1.2). */
function toWholeReader(client: Client): Client {
  const { partner } = client
  const reads = { ...partner.reads, needsRecordedBy: false, unmarkedCodes: [], histories: false }
  return { ...client, partner: { ...partner, reads, unmarkedLetters: [] } }
}

/** One mark that was recorded between the two times, ms since the epoch, is enough: V2 may have refused others. */
function judgeHidden(
  sent: readonly FollowedMark[],
  rows: readonly FlatMark[],
  fromMs: number,
  toMs: number,
): HiddenOutcome | undefined {
  const byKey = Map.groupBy(rows, markKey)
  const outcomes = sent.map(({ learner, event, mark }): HiddenOutcome | undefined => {
    const own = byKey.get(`${learner} ${event}`.toLowerCase()) ?? []
    const same = own.filter((row) => isSameAttendance(row, mark)).map(recordedMs)
    if (same.some((ms) => ms >= fromMs && ms <= toMs)) return 'kept'
    // It may have stood there before; without a row the session is none of the learner's.
    if (same.length > 0 || own.length === 0) return undefined
    return own.every((row) => row['RecordedOn'] === null || recordedMs(row) < fromMs) ? 'dropped' : undefined
  })
  return outcomes.find((outcome) => outcome === 'kept') ?? outcomes.find((outcome) => outcome === 'dropped')
}

/** Minutes and comment are left out: the service may change them. */
function isSameAttendance(row: FlatMark, mark: FlatMark): boolean {
  return (
    row['Present'] === mark['Present'] &&
    row['Absent'] === mark['Absent'] &&
    isSameGuid(String(row['SchoolAttendanceCode']), String(mark['SchoolAttendanceCode']))
  )
}
