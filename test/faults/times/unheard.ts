import type { WriteHistory } from '../load/history.ts'
import type { Fault, FaultPlan } from '../proxy/fault.ts'
import { type ForwardLog, sendHeader } from '../proxy/forwards.ts'

/** Marks of V2 whose answer reached no client. No journal can know these marks, so the outcomes of later writes may stay unknown. */
export interface Unheard {
  /** The faults of the connections to V2. */
  readonly plan: FaultPlan
  readonly onForward: ForwardLog['onForward']
  /**
   * Returns true if `own` may stay unknown because the answer to the older write `other` was lost. With `all`, a lost answer to any request
   * of the older write counts, and otherwise only a lost answer to its last request to V2.
   */
  readonly hides: (own: WriteHistory, other: WriteHistory, all: boolean) => boolean
}

export function createUnheard(plan: FaultPlan, log: ForwardLog): Unheard {
  const lost = new Set<number>()
  let fault: Fault = { kind: 'pass' }
  return {
    plan: { ...plan, request: (head) => (fault = plan.request(head)) },
    // The proxy calls `onForward` immediately after `plan.request`, so `fault` is the fault of this request.
    onForward: (bytes) => {
      const sentAt = new RegExp(`^${sendHeader}: *(\\d+)`, 'im').exec(bytes.toString('latin1'))?.[1]
      if (fault.kind === 'resetAfter' || fault.kind === 'truncate') lost.add(Number(sentAt))
      return log.onLegacyForward(bytes)
    },
    hides: (own, other, all) => {
      const relayed = (log.forwards().get(other.write.name) ?? []).filter(({ face }) => face === 'V2')
      return relayed.slice(all ? 0 : -1).some(({ sentAt = Infinity }) => {
        // The client may also have disconnected, so that the answer is lost.
        const next = other.sends.find((at) => at > sentAt) ?? Infinity
        const isHeard = !lost.has(sentAt) && other.answers.some(({ at }) => at > sentAt && at < next)
        return sentAt <= own.sentAt && !isHeard
      })
    },
  }
}
