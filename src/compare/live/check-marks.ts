import type { Clock } from '../../clock.ts'
import { toFlatRecord } from '../../translate/index.ts'
import type { V3Record } from '../../v3/record/v3-record.ts'
import { compareMark, type OwnRules } from '../diff/index.ts'
import type { Comparison } from '../verdict.ts'
import type { AskedRead, AskSide } from './ask-sides.ts'
import type { Check } from './checks.ts'
import type { AcceptedMark } from './compare-reply.ts'
import { plainly } from './findings.ts'
import { factsOf, type FlatMark, isObject } from './flat-mark.ts'
import { type FollowedMark, followMarks } from './follow-marks.ts'
import type { MarkPlace } from './latest-marks.ts'
import type { OfferedServedWrite, OfferedWrite } from './offered-exchange.ts'
import { readBody } from './reply-bodies.ts'

export interface MarkCheckOptions {
  readonly ask: AskSide
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
  { client }: OfferedWrite,
  accepted: readonly AcceptedMark[],
  check: Check,
  options: MarkCheckOptions,
): Promise<void> {
  const path = '/V2/Attendance/AttendanceRecords'
  const marks = accepted.map(({ record, mark, place }) => toFollowed(record, mark, place))
  return checkMarks({ client, path }, marks, check, options, (own, seen) => {
    if (seen === undefined) return plainly('onlyV2')
    return compareMark(own, seen, toOptions(own, options.rules))
  })
}

/** `readBack`: reads on V2 what V3 has accepted, and sets it against the reply that the client got. */
export function checkReadBack(
  { client, path, records }: OfferedServedWrite,
  places: readonly MarkPlace[],
  check: Check,
  options: MarkCheckOptions,
): Promise<void> {
  const marks = records.map(({ record, part }, index) => {
    const body = readBody(part.json)
    const inner = isObject(body) && isObject(body['d']) ? body['d'] : body
    return toFollowed(record, isObject(inner) ? inner : undefined, places[index] ?? alone)
  })
  const set = path.replace(/\/[^/]*\/?$/, '/AttendanceRecords')
  return checkMarks({ client, path: set }, marks, check, options, (own, seen) => {
    if (seen === undefined) return plainly('onlyV3')
    return compareMark(seen, own, toOptions(own, options.rules))
  })
}

const alone: MarkPlace = { isCorrection: false, isSuperseded: () => false }

async function checkMarks(
  { client, path }: Pick<AskedRead, 'client' | 'path'>,
  marks: readonly FollowedMark[],
  check: Check,
  { ask, clock, sinceMs, stopped }: MarkCheckOptions,
  compare: (own: FlatMark, seen: FlatMark | undefined) => Comparison,
): Promise<void> {
  const { settleMs } = client.partner.compare
  const deadlineMs = clock.nowMs() + settleMs + CALLS_MS
  const read = { client, path, kind: 'filter', accept: '', prefer: '' } as const
  const { compared, delaysMs, skipped } = await followMarks(marks, {
    ask: (filter) =>
      ask({ ...read, query: `$filter=${encodeURIComponent(filter)}` }, deadlineMs - clock.nowMs()),
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

function toFollowed(record: V3Record, mark: FlatMark | undefined, place: MarkPlace): FollowedMark {
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
