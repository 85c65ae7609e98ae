import type { EffectEntry } from '../../../src/sandbox/control/routes.ts'
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
 * True for an older write that only V2 was ever sent, and that it recorded after a newer one because its client had sent it once more: V2
 * applies what comes last, and a batch that V2 alone sees again is treated as without an adapter. `placedAt`: when the client had an answer
 * by which its write is older; undefined: the newer one is of the same batch.
 */
export function isSentAgainToV2(older: Recorded, placedAt: number | undefined): boolean {
  const { own, forwards = [] } = older
  if (!isAsOftenAsSent(older) || !forwards.every(({ face }) => face === 'V2')) return false
  const again = own.sends.slice(1).filter((sent) => sent > (placedAt ?? own.sentAt))
  return forwards.some(({ sentAt = 0 }) => again.includes(sentAt))
}
