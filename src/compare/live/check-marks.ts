import type { Clock } from '../../clock.ts'
import type { Side } from '../../rollout/stage.ts'
import { compareMark } from '../diff/compare-mark.ts'
import { type OwnRules, verdictOnly } from '../diff/findings.ts'
import { isMembers, type Members } from '../diff/values.ts'
import { type Comparison, isEqual } from '../verdict.ts'
import { splitTarget } from '../wire-exchange.ts'
import { type AskSide, MARKS_PATH } from './ask-sides.ts'
import type { OpenReply } from './compare-reply.ts'
import type { CheckResult, OfferedServedWrite, OfferedWrite } from './exchange.ts'
import {
  type AskMarks,
  type FollowedMark,
  followMarks,
  type FollowResult,
  sampled,
  toFollowed,
} from './follow-marks.ts'
import { factsOf, type MarkPlace, readBody, unknownPlace, unwrapped } from './marks.ts'

export interface CheckOptions {
  readonly ask: Readonly<Record<Side, AskSide>>
  readonly rules: OwnRules | undefined
  readonly clock: Clock
  readonly sinceMs: number
  readonly stopped: AbortSignal
}

/** The time that a check has for its requests, in addition to the time that replication may take. */
const CALLS_MS = 60_000

/** Members that clients do not send. If the reply contains no record, their expected values are unknown, so they are not compared. */
const unsent = new Set([
  'ExternalID',
  'RecordedOn',
  'ChangeProcessName',
  'AttendableEventStart',
  'RecordedBy',
  'AttendanceHistorys',
])

/** Runs the check `reply`: reads from V3 the marks that V2 accepted, builds the reply for them, and compares it with the reply of V2. */
export async function checkReply(
  offered: OfferedWrite,
  { accepted, judge }: OpenReply,
  options: CheckOptions,
): Promise<CheckResult> {
  if (accepted.length === 0) return { kind: 'compared', records: judge([]) }
  const followed = await follow(offered, accepted, options, (own, seen) =>
    compareAccepted(own, seen, options.rules),
  )
  const { compared, delaysMs, skipped } = followed
  return skipped === undefined
    ? { kind: 'compared', records: judge(compared), delaysMs }
    : { kind: 'skipped', reason: skipped }
}

/** Compares `own`, a mark that V2 accepted, with `seen`, the same mark on V3. `seen` is `undefined` if V3 does not have the mark. */
export function compareAccepted(
  own: Members,
  seen: Members | undefined,
  rules: OwnRules | undefined,
): Comparison {
  return seen === undefined
    ? verdictOnly('onlyV2')
    : compareMark(own, seen, { rules, without: unknownOf(own) })
}

const unknownOf = (own: Members): ReadonlySet<string> | undefined =>
  'ExternalID' in own ? undefined : unsent

/** Runs the check `readBack`: reads from V2 the marks that V3 accepted, and compares them with the reply that the client received. */
export async function checkReadBack(
  offered: OfferedServedWrite,
  places: readonly MarkPlace[],
  options: CheckOptions,
): Promise<CheckResult> {
  const marks = offered.records.map(({ record, part }, index) => {
    const body = unwrapped(readBody(part.json))
    return toFollowed(record, isMembers(body) ? body : {}, places[index] ?? unknownPlace)
  })
  if (marks.length === 0) return { kind: 'skipped', reason: 'empty' }
  const { compared, delaysMs, skipped } = await follow(offered, marks, options, (own, seen) =>
    seen === undefined
      ? verdictOnly('onlyV3')
      : compareMark(seen, own, { rules: options.rules, without: unknownOf(own) }),
  )
  if (skipped !== undefined) return { kind: 'skipped', reason: skipped }
  const records = compared.map(({ followed: { mark, place }, comparison }) => ({
    ...factsOf(mark, place),
    ...comparison,
  }))
  return { kind: 'compared', records, delaysMs }
}

/** Reads marks on the side that did not serve the write, until that side shows them or `settleMs` has passed. */
function follow(
  { client, served, target, durationMs }: OfferedWrite | OfferedServedWrite,
  marks: readonly FollowedMark[],
  { ask, clock, sinceMs, stopped }: CheckOptions,
  compare: (own: Members, seen: Members | undefined) => Comparison,
): Promise<FollowResult> {
  const { settleMs } = client.partner.compare
  // The time covers requests to both sides: `followMarks` also reads the side that served the write.
  const deadlineMs = clock.nowMs() + settleMs + CALLS_MS
  const paths = { v2: splitTarget(target)[0].replace(/\/[^/]*\/?$/, '/AttendanceRecords'), v3: MARKS_PATH }
  const askOn =
    (side: Side): AskMarks =>
    (filter) => {
      const query = `$filter=${encodeURIComponent(filter)}`
      const read = { client, kind: 'filter', path: paths[side], query, accept: '', prefer: '' } as const
      return ask[side](read, deadlineMs - clock.nowMs())
    }
  return followMarks(sampled(marks), {
    ask: askOn(served === 'v2' ? 'v3' : 'v2'),
    serving: {
      ask: askOn(served),
      receivedMs: sinceMs - durationMs,
      storedWithinMs: served === 'v2' ? 0 : durationMs,
      // The adapter never posts a mark to V3 twice. A mark with equal content and another time is therefore no newer write, but a
      // difference between V3's reply and the mark that V3 stored.
      isCorrection: ({ mark }, seen) =>
        served === 'v2' || !isEqual(compareMark(seen, mark, { without: unsent })),
    },
    compare: (followed, seen) => compare(followed.mark, seen),
    clock,
    settleMs,
    sinceMs,
    stopped,
  })
}
