import type { Clock } from '../../clock.ts'
import { toFlatRecord } from '../../translate/index.ts'
import type { V3Record } from '../../v3/record.ts'
import type { Side } from '../../rollout/index.ts'
import { compareMark, type OwnRules } from '../diff/index.ts'
import type { Comparison } from '../verdict.ts'
import type { AskSide } from './ask-sides.ts'
import type { Check } from './checks.ts'
import type { AcceptedMark } from './compare-reply.ts'
import { isFound, plainly } from './findings.ts'
import { factsOf, type FlatMark, isObject } from './flat-mark.ts'
import { followMarks } from './follow-marks.ts'
import type { MarkPlace } from './latest-marks.ts'
import type { OfferedServedWrite, OfferedWrite } from './offered-exchange.ts'
import type { AskMarks, FollowedMark } from './read-marks.ts'
import { readBody } from './reply-bodies.ts'

export interface MarkCheckOptions {
  readonly ask: Readonly<Record<Side, AskSide>>
  readonly rules: OwnRules | undefined
  readonly clock: Clock
  /** When the exchange was offered, by the clock. */
  readonly sinceMs: number
  readonly stopped: AbortSignal
}

/** Time for calls besides that for replication. */
const CALLS_MS = 60_000

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
  check: Check,
  options: MarkCheckOptions,
): Promise<void> {
  const marks = accepted.map(({ record, mark, place }) => toFollowed(record, mark, place))
  return checkMarks(offered, marks, check, options, (own, seen) => compareAccepted(own, seen, options.rules))
}

/** Sets a mark that V2 accepted against the one that V3 shows; undefined: it shows none. */
export function compareAccepted(
  own: FlatMark,
  seen: FlatMark | undefined,
  rules: OwnRules | undefined,
): Comparison {
  return seen === undefined ? plainly('onlyV2') : compareMark(own, seen, toOptions(own, rules))
}

/** `readBack`: reads on V2 what V3 has accepted, and sets it against the reply that the client got. */
export function checkReadBack(
  offered: OfferedServedWrite,
  places: readonly MarkPlace[],
  check: Check,
  options: MarkCheckOptions,
): Promise<void> {
  const marks = offered.records.map(({ record, part }, index) => {
    const body = readBody(part.json)
    const inner = isObject(body) && isObject(body['d']) ? body['d'] : body
    return toFollowed(record, isObject(inner) ? inner : undefined, places[index] ?? alone)
  })
  return checkMarks(offered, marks, check, options, (own, seen) => {
    if (seen === undefined) return plainly('onlyV3')
    return compareMark(seen, own, toOptions(own, options.rules))
  })
}

const alone: MarkPlace = { isCorrection: false, isSuperseded: () => false }

async function checkMarks(
  { client, served, path, receivedMs, repliedMs }: OfferedWrite | OfferedServedWrite,
  marks: readonly FollowedMark[],
  check: Check,
  { ask, clock, sinceMs, stopped }: MarkCheckOptions,
  compare: (own: FlatMark, seen: FlatMark | undefined) => Comparison,
): Promise<void> {
  const { settleMs } = client.partner.compare
  // A newer mark has the same time to be seen.
  const deadlineMs = clock.nowMs() + 2 * settleMs + CALLS_MS
  const paths = {
    v2: path.replace(/\/[^/]*\/?$/, '/AttendanceRecords'),
    v3: '/V2/Attendance/AttendanceRecords',
  }
  const askOn =
    (side: Side): AskMarks =>
    (filter) =>
      ask[side](
        {
          client,
          path: paths[side],
          query: `$filter=${encodeURIComponent(filter)}`,
          kind: 'filter',
          accept: '',
          prefer: '',
        },
        deadlineMs - clock.nowMs(),
      )
  const { compared, delaysMs, skipped } = await followMarks(marks, {
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
  if (skipped !== undefined) {
    check.skipped(skipped)
    return
  }
  const records = compared.map(({ followed: { mark, place }, comparison }) => ({
    ...comparison,
    ...factsOf(mark, { isCorrection: place.isCorrection }),
  }))
  check.compared(records, delaysMs)
}

/** A record that was sent as a mark to be read; `mark`: what the side that served it says of it. */
export function toFollowed(record: V3Record, mark: FlatMark | undefined, place: MarkPlace): FollowedMark {
  const sent = Object.fromEntries(
    Object.entries(toFlatRecord(record)).filter(([name]) => name !== 'unmapped'),
  )
  const [learner, event] = [record.Attendee.ExternalID, record.Event.ExternalID]
  return { learner, event, mark: mark === undefined ? sent : { ...sent, ...mark }, place }
}

function toOptions(own: FlatMark, rules: OwnRules | undefined) {
  return {
    ...(rules === undefined ? {} : { rules }),
    ...('ExternalID' in own ? {} : { without: unsent }),
  }
}
