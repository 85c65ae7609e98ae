import type { Finding } from './check-history.ts'
import type { Recorded } from './v2-alone.ts'

/** A write that the service recorded, with the places of its first and its last effect. */
export interface Placed extends Recorded {
  readonly first: number
  readonly last: number
}

/**
 * Finds writes that V2 recorded after V3 had recorded a newer one of the same learner, session and school, although V2 had been sent them
 * before the newer one left its client. A step forward drains, so V3 is sent nothing of a unit before V2 has ended what it was sent; a client that
 * corrects a mark without waiting for the answer counts on that. `sameKey`: writes of one learner and session.
 */
export function checkDrained(sameKey: readonly Placed[]): readonly Finding[] {
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

/** True where V2 alone was sent the older one, for the last time before the newer one left its client. */
function wasUnderWay({ own, forwards = [] }: Placed, newer: Placed): boolean {
  if (own.batch === newer.own.batch || own.school !== newer.own.school || forwards.length === 0) return false
  const { sentAt } = newer.own
  return (
    forwards.every(({ face, at }) => face === 'V2' && at < sentAt) && own.sends.every((sent) => sent < sentAt)
  )
}
