import type { WriteHistory } from '../load/history.ts'
import type { Fault, FaultPlan } from '../proxy/fault.ts'
import { type ForwardLog, sendHeader } from '../proxy/forwards.ts'

/** Marks of V2 whose answer came to nobody: no journal can know them, so what became of others behind them may stay unknown. */
export interface Unheard {
  /** The faults of the connections to V2. */
  readonly plan: FaultPlan
  readonly onForward: ForwardLog['onForward']
  /** True for a write that may stay unknown behind the mark of an older one, whose answer was lost: the last mark of that one, or with `all` any. */
  readonly hides: (own: WriteHistory, other: WriteHistory, all: boolean) => boolean
}

/** Watches the requests to V2. */
export function createUnheard(plan: FaultPlan, log: ForwardLog): Unheard {
  const lost = new Set<number>()
  let fault: Fault = { kind: 'pass' }
  return {
    plan: { ...plan, request: (head) => (fault = plan.request(head)) },
    // Called right after the fault of the request was decided.
    onForward: (bytes) => {
      const sentAt = new RegExp(`^${sendHeader}: *(\\d+)`, 'im').exec(bytes.toString('latin1'))?.[1]
      if (fault.kind === 'resetAfter' || fault.kind === 'truncate') lost.add(Number(sentAt))
      return log.onLegacyForward(bytes)
    },
    hides: (own, other, all) => {
      const relayed = (log.forwards().get(other.write.name) ?? []).filter(({ face }) => face === 'V2')
      return relayed.slice(all ? 0 : -1).some(({ sentAt = Infinity }) => {
        // Its client may have gone away, and the answer with it.
        const next = other.sends.find((at) => at > sentAt) ?? Infinity
        const isHeard = !lost.has(sentAt) && other.answers.some(({ at }) => at > sentAt && at < next)
        return sentAt <= own.sentAt && !isHeard
      })
    },
  }
}
