import type { EffectEntry } from '../../../src/sandbox/control/effects.ts'
import type { WriteHistory } from '../load/history.ts'
import type { Forward } from '../proxy/forwards.ts'

/** A write that the service recorded. */
export interface Recorded {
  readonly own: WriteHistory
  readonly effects: readonly EffectEntry[]
  /** The requests with it that went to the service; undefined where nobody watched them. */
  readonly forwards: readonly Forward[] | undefined
}

/**
 * True for effects that V2 has with or without an adapter: it applies a batch as often as its client sends it. All of them are of V2, and
 * there are no more of them than requests of the client that were relayed, each once.
 */
export function isAsOftenAsSent({ own, effects, forwards = [] }: Recorded): boolean {
  if (!effects.every(({ face }) => face === 'V2')) return false
  const relayed = forwards.filter(({ face }) => face === 'V2').map(({ sentAt }) => sentAt)
  const isOwn = (sentAt: number | undefined): boolean => sentAt !== undefined && own.sends.includes(sentAt)
  return effects.length <= relayed.length && new Set(relayed).size === relayed.length && relayed.every(isOwn)
}

/**
 * True where V2 alone recorded an older write after a newer one because the client of the older one had sent it once more: V2 applies what
 * comes last. `placedAt`: when that client had an answer by which the older one is older; undefined: both are of the same batch.
 */
export function isSentAgainToV2(older: Recorded, newer: Recorded, placedAt: number | undefined): boolean {
  if (!newer.effects.every(({ face }) => face === 'V2') || !isAsOftenAsSent(older)) return false
  const after = placedAt ?? older.own.sentAt
  const again = older.own.sends.slice(1).filter((sent) => sent > after)
  return older.forwards?.some(({ face, sentAt = 0 }) => face === 'V2' && again.includes(sentAt)) === true
}
