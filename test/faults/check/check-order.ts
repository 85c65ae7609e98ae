import type { Answer, WriteHistory } from '../load/history.ts'
import type { Finding, Recorded } from './finding.ts'

/** A write that the service recorded, with the sequence numbers of its first and its last effect. */
interface RecordedWrite extends Recorded {
  readonly first: number
  readonly last: number
}

export interface CheckedOrder {
  readonly findings: readonly Finding[]
  /** The number of writes that V2 alone received and applied again over a newer write of V3, because their clients resent them. */
  readonly repeated: number
}

/**
 * Finds writes that were recorded after a newer write of the same learner and session. A write is newer if it follows in the same batch, or
 * was sent after the older write was answered "created" or "unknown". A write that was answered "not applied", or not at all, has no
 * position in this order yet, because its client may still resend it. An order that V2 would also produce without an adapter is not a
 * finding, except in `checkDrained`.
 */
export function checkOrder(all: readonly Recorded[]): CheckedOrder {
  const recorded = all.flatMap((one): RecordedWrite[] => {
    const seqs = one.effects.map(({ seq }) => seq)
    return seqs.length === 0 ? [] : [{ ...one, first: Math.min(...seqs), last: Math.max(...seqs) }]
  })
  const byKey = Map.groupBy(recorded, ({ own }) => keyOf(own))
  const late = [...byKey.values()].flatMap((sameKey) =>
    sameKey.flatMap((older) => {
      const overtaken = sameKey.filter((newer) => isBefore(older.own, newer.own) && older.last > newer.first)
      return overtaken.length === 0 ? [] : [{ older, overtaken }]
    }),
  )
  const isExcused = (older: RecordedWrite, newer: RecordedWrite): boolean =>
    wasResentToV2(older, placeOf(older.own, newer.own))
  const isOfV3 = ({ effects }: RecordedWrite): boolean => effects.some(({ face }) => face === 'V3')
  const findings = late.flatMap(({ older, overtaken }): Finding[] => {
    const newer = overtaken.find((each) => !isExcused(older, each))
    if (newer === undefined) return []
    const against = newer.own.write.name
    const because = `recorded as ${older.last}, after the newer ${against} (${newer.first})`
    return [{ kind: 'order', of: older.own.write.name, because, against }]
  })
  const known = new Set(findings.map(({ of }) => of))
  const undrained = [...byKey.values()].flatMap(checkDrained).filter(({ of }) => !known.has(of))
  return {
    findings: [...findings, ...undrained],
    repeated: late.filter(({ older, overtaken }) =>
      overtaken.some((newer) => isOfV3(newer) && isExcused(older, newer)),
    ).length,
  }
}

/** Facts about the other writes of the same learner and session. */
export interface Rivals {
  /** Returns true if the service recorded another write of the same learner and session. */
  readonly wasMarked: (own: WriteHistory) => boolean
  /**
   * Returns true if the service recorded another write that was sent later or at the same time. The adapter must then no longer post this
   * write.
   */
  readonly wasOvertaken: (own: WriteHistory) => boolean
}

/** Groups the recorded writes by learner and session. */
export function createRivals(all: readonly Recorded[]): Rivals {
  const recorded = all.filter(({ effects }) => effects.length > 0)
  const byKey = Map.groupBy(recorded, ({ own }) => keyOf(own))
  const someOther = (own: WriteHistory, holds: (other: Recorded) => boolean): boolean =>
    byKey.get(keyOf(own))?.some((other) => other.own !== own && holds(other)) === true
  // An older write counts as newer if V2 received it again later, because V2 applies a resent batch like a new batch.
  const wasRelayedSince = ({ forwards = [] }: Recorded, { sentAt }: WriteHistory): boolean =>
    forwards.some(({ face, at }) => face === 'V2' && at > sentAt)
  return {
    wasMarked: (own) => someOther(own, () => true),
    wasOvertaken: (own) =>
      someOther(own, (other) => !isBefore(other.own, own) || wasRelayedSince(other, own)),
  }
}

function keyOf({ write }: WriteHistory): string {
  return `${write.learner} ${write.event}`
}

/** The answers after which a write counts as older than every later write, because the write is recorded or may be recorded. */
const placingKinds: readonly Answer['kind'][] = ['created', 'unknown', 'noOutcome']

function isBefore(older: WriteHistory, newer: WriteHistory): boolean {
  if (older.batch === newer.batch) return older.position < newer.position
  const placedAt = placeOf(older, newer)
  return placedAt !== undefined && placedAt < newer.sentAt
}

/** Returns when the older write got its first answer of `placingKinds`, or `undefined` if it has none or both writes are in one batch. */
function placeOf(older: WriteHistory, newer: WriteHistory): number | undefined {
  if (older.batch === newer.batch) return undefined
  return older.answers.find(({ answer: { kind } }) => placingKinds.includes(kind))?.at
}

/**
 * Finds writes that V2 recorded after V3 had recorded a newer write of the same learner, session and school, although V2 received them
 * before the newer write left its client. A step forward waits for requests in progress, so V3 receives no write of a school before V2 has
 * finished that school's requests. A client that corrects a mark without waiting for the answer relies on this. `sameKey` holds the writes
 * of one learner and session.
 */
function checkDrained(sameKey: readonly RecordedWrite[]): readonly Finding[] {
  const onV3 = sameKey.flatMap((newer) => {
    const seqs = newer.effects.filter(({ face }) => face === 'V3').map(({ seq }) => seq)
    return seqs.length === 0 ? [] : [{ newer, seq: Math.min(...seqs) }]
  })
  return sameKey.flatMap((older): Finding[] => {
    const overtaken = onV3.find(({ newer, seq }) => seq < older.last && wasInProgress(older, newer))
    if (overtaken === undefined) return []
    const against = overtaken.newer.own.write.name
    const because = `in progress on V2 when ${against} was sent, but recorded as ${older.last}, after ${against} on V3 (${overtaken.seq})`
    return [{ kind: 'order', of: older.own.write.name, because, against }]
  })
}

/** Returns true if only V2 received the older write, and received it for the last time before the newer write left its client. */
function wasInProgress({ own, forwards = [] }: RecordedWrite, newer: RecordedWrite): boolean {
  if (own.batch === newer.own.batch || own.school !== newer.own.school || forwards.length === 0) return false
  const { sentAt } = newer.own
  return (
    forwards.every(({ face, at }) => face === 'V2' && at < sentAt) && own.sends.every((sent) => sent < sentAt)
  )
}

/**
 * Returns true if all effects are on V2 and each request of the client was relayed at most once. V2 applies a batch as often as its client
 * sends it, with or without an adapter.
 */
export function isAsOftenAsSent({ own, effects, forwards = [] }: Recorded): boolean {
  if (!effects.every(({ face }) => face === 'V2')) return false
  const relayed = forwards.filter(({ face }) => face === 'V2').map(({ sentAt }) => sentAt)
  const isOwn = (sentAt: number | undefined): boolean => sentAt !== undefined && own.sends.includes(sentAt)
  return effects.length <= relayed.length && new Set(relayed).size === relayed.length && relayed.every(isOwn)
}

/**
 * Returns true if only V2 received the older write, and V2 recorded it after the newer write because its client resent it. Without an
 * adapter V2 would do the same. `placedAt` is the result of `placeOf`.
 */
function wasResentToV2(older: Recorded, placedAt: number | undefined): boolean {
  const { own, forwards = [] } = older
  if (!isAsOftenAsSent(older) || !forwards.every(({ face }) => face === 'V2')) return false
  const again = own.sends.slice(1).filter((sent) => sent > (placedAt ?? own.sentAt))
  return forwards.some(({ sentAt = 0 }) => again.includes(sentAt))
}
