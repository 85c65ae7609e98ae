import type { EffectEntry } from '../../../src/sandbox/control/routes.ts'
import type { Answer, WriteHistory } from '../load/history.ts'
import type { Forward } from '../proxy/forwards.ts'
import { checkDrained, type Placed } from './check-drained.ts'
import type { Finding } from './check-history.ts'
import { isSentAgainToV2 } from './v2-alone.ts'

/** What was found about the order of writes. */
export interface CheckedOrder {
  readonly findings: readonly Finding[]
  /** Writes that V2 alone was sent, and applied again, over a newer one of V3, because their clients sent them again. */
  readonly repeated: number
}

/**
 * Finds writes that were recorded after a newer one of the same learner and session. Newer is what the clients themselves had
 * put after it: further on in the same batch, or sent when the older one had already been told created or unknown. A write
 * that was told "not applied" or nothing has no place yet: its client may still send it. What V2 does by itself is not a finding.
 * A write that was under way on V2 while V3 recorded a newer one is one too (`checkDrained`).
 */
export function checkOrder(
  writes: readonly WriteHistory[],
  effectsOf: ReadonlyMap<string, readonly EffectEntry[]>,
  forwards?: ReadonlyMap<string, readonly Forward[]>,
): CheckedOrder {
  const recorded = writes.flatMap((own): Placed[] => {
    const effects = effectsOf.get(own.write.name) ?? []
    const seqs = effects.map(({ seq }) => seq)
    if (seqs.length === 0) return []
    const forwarded = forwards?.get(own.write.name)
    return [{ own, effects, forwards: forwarded, first: Math.min(...seqs), last: Math.max(...seqs) }]
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

/** What became of the other writes of the same learner and session. */
export interface Rivals {
  /** Another one was recorded. */
  readonly wasMarked: (own: WriteHistory) => boolean
  /**
   * Another one that was sent later or at the same time was recorded: this one is never sent again, for it would undo the
   * newer one.
   */
  readonly wasOvertaken: (own: WriteHistory) => boolean
}

/** Groups the writes that were recorded by learner and session. */
export function createRivals(
  writes: readonly WriteHistory[],
  effectsOf: ReadonlyMap<string, readonly EffectEntry[]>,
  forwards?: ReadonlyMap<string, readonly Forward[]>,
): Rivals {
  const recorded = writes.filter(({ write }) => effectsOf.has(write.name))
  const byKey = Map.groupBy(recorded, keyOf)
  const someOther = (own: WriteHistory, holds: (other: WriteHistory) => boolean): boolean =>
    byKey.get(keyOf(own))?.some((other) => other !== own && holds(other)) === true
  // V2 takes a batch that is sent again for a new one, wherever its client had put it before.
  const wasRelayedSince = (other: WriteHistory, { sentAt }: WriteHistory): boolean =>
    forwards?.get(other.write.name)?.some(({ face, at }) => face === 'V2' && at > sentAt) === true
  return {
    wasMarked: (own) => someOther(own, () => true),
    wasOvertaken: (own) => someOther(own, (other) => !isBefore(other, own) || wasRelayedSince(other, own)),
  }
}

function keyOf({ write }: WriteHistory): string {
  return `${write.learner} ${write.event}`
}

/** After these answers a client has reason to send a newer one: the older one is recorded, or may be. */
const placingKinds: readonly Answer['kind'][] = ['created', 'unknown', 'noOutcome']

function isBefore(older: WriteHistory, newer: WriteHistory): boolean {
  if (older.batch === newer.batch) return older.position < newer.position
  const placedAt = placeOf(older, newer)
  return placedAt !== undefined && placedAt < newer.sentAt
}

/** When a write had its place before one of another batch; undefined: within the same batch, or it has none yet. */
function placeOf(older: WriteHistory, newer: WriteHistory): number | undefined {
  if (older.batch === newer.batch) return undefined
  return older.answers.find(({ answer: { kind } }) => placingKinds.includes(kind))?.at
}
