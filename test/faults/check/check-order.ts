import type { Answer, WriteHistory } from '../load/history.ts'
import type { Finding, Recorded } from './finding.ts'

/** A write that the service recorded, with the positions of its first and its last effect. */
interface Placed extends Recorded {
  readonly first: number
  readonly last: number
}

/** The findings about the order of writes. */
export interface CheckedOrder {
  readonly findings: readonly Finding[]
  /** Writes that only V2 received, and that V2 applied again over a newer write of V3 because their clients resent them. */
  readonly repeated: number
}

/**
 * Finds writes that were recorded after a newer write of the same learner and session. A write is newer if its client put it later in the
 * same batch, or sent it after the older write was answered "created" or "unknown". A write that was answered "not applied", or not at all,
 * has no position yet, because its client may still send it. V2's own behaviour is not a finding. A write that was in progress on V2 while
 * V3 recorded a newer one is a finding (`checkDrained`).
 */
export function checkOrder(all: readonly Recorded[]): CheckedOrder {
  const recorded = all.flatMap((one): Placed[] => {
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
  const isExcused = (older: Placed, newer: Placed): boolean =>
    isSentAgainToV2(older, placeOf(older.own, newer.own))
  const isOfV3 = ({ effects }: Placed): boolean => effects.some(({ face }) => face === 'V3')
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

/** The outcomes of the other writes of the same learner and session. */
export interface Rivals {
  /** Another write was recorded. */
  readonly wasMarked: (own: WriteHistory) => boolean
  /**
   * Another write that was sent later or at the same time was recorded. This write is never sent again, because it would undo the newer
   * one.
   */
  readonly wasOvertaken: (own: WriteHistory) => boolean
}

/** Groups the recorded writes by learner and session. */
export function createRivals(all: readonly Recorded[]): Rivals {
  const recorded = all.filter(({ effects }) => effects.length > 0)
  const byKey = Map.groupBy(recorded, ({ own }) => keyOf(own))
  const someOther = (own: WriteHistory, holds: (other: Recorded) => boolean): boolean =>
    byKey.get(keyOf(own))?.some((other) => other.own !== own && holds(other)) === true
  // V2 treats a resent batch as a new batch, whatever order its client had intended.
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

/** After these answers a client may send a newer write, because the older one is or may be recorded. */
const placingKinds: readonly Answer['kind'][] = ['created', 'unknown', 'noOutcome']

function isBefore(older: WriteHistory, newer: WriteHistory): boolean {
  if (older.batch === newer.batch) return older.position < newer.position
  const placedAt = placeOf(older, newer)
  return placedAt !== undefined && placedAt < newer.sentAt
}

/**
 * Returns when a write was ordered before a write of another batch, or `undefined` if both are in one batch or the write has no position
 * yet.
 */
function placeOf(older: WriteHistory, newer: WriteHistory): number | undefined {
  if (older.batch === newer.batch) return undefined
  return older.answers.find(({ answer: { kind } }) => placingKinds.includes(kind))?.at
}

/**
 * Finds writes that V2 recorded after V3 had recorded a newer write of the same learner, session and school, although V2 received them
 * before the newer write left its client. A step forward drains, so V3 receives nothing of a unit before V2 has finished its requests. A
 * client that corrects a mark without waiting for the answer relies on this. `sameKey` holds the writes of one learner and session.
 */
function checkDrained(sameKey: readonly Placed[]): readonly Finding[] {
  const onV3 = sameKey.flatMap((newer) => {
    const seqs = newer.effects.filter(({ face }) => face === 'V3').map(({ seq }) => seq)
    return seqs.length === 0 ? [] : [{ newer, seq: Math.min(...seqs) }]
  })
  return sameKey.flatMap((older): Finding[] => {
    const overtaken = onV3.find(({ newer, seq }) => seq < older.last && wasUnderWay(older, newer))
    if (overtaken === undefined) return []
    const against = overtaken.newer.own.write.name
    const because = `under way on V2 when ${against} was sent, recorded as ${older.last}, after V3 had recorded that one (${overtaken.seq})`
    return [{ kind: 'order', of: older.own.write.name, because, against }]
  })
}

/** Returns true if only V2 received the older write, for the last time before the newer write left its client. */
function wasUnderWay({ own, forwards = [] }: Placed, newer: Placed): boolean {
  if (own.batch === newer.own.batch || own.school !== newer.own.school || forwards.length === 0) return false
  const { sentAt } = newer.own
  return (
    forwards.every(({ face, at }) => face === 'V2' && at < sentAt) && own.sends.every((sent) => sent < sentAt)
  )
}

/**
 * Returns true for effects that V2 has with or without an adapter, because V2 applies a batch as often as its client sends it. All effects
 * must be on V2, and there must be no more of them than relayed requests of the client, each relayed once.
 */
export function isAsOftenAsSent({ own, effects, forwards = [] }: Recorded): boolean {
  if (!effects.every(({ face }) => face === 'V2')) return false
  const relayed = forwards.filter(({ face }) => face === 'V2').map(({ sentAt }) => sentAt)
  const isOwn = (sentAt: number | undefined): boolean => sentAt !== undefined && own.sends.includes(sentAt)
  return effects.length <= relayed.length && new Set(relayed).size === relayed.length && relayed.every(isOwn)
}

/**
 * Returns true for an older write that only V2 received, and that V2 recorded after a newer write because its client resent it. V2 applies
 * what arrives last, and a resent batch that only V2 knows is treated as without an adapter. `placedAt` is the time of the answer that
 * makes this write the older one, or `undefined` if the newer write is in the same batch.
 */
function isSentAgainToV2(older: Recorded, placedAt: number | undefined): boolean {
  const { own, forwards = [] } = older
  if (!isAsOftenAsSent(older) || !forwards.every(({ face }) => face === 'V2')) return false
  const again = own.sends.slice(1).filter((sent) => sent > (placedAt ?? own.sentAt))
  return forwards.some(({ sentAt = 0 }) => again.includes(sentAt))
}
