import type { Clock } from '../../clock.ts'
import { FairLine } from './fair-line.ts'
import { createQuota } from './quota.ts'
import { holderOf, type QueueKey } from './queue-key.ts'

/** Why a caller may not pass: too many of its owner wait already, the wait took too long, or the caller has gone. */
export type GateRefusal = 'share' | 'wait' | 'gone'

/** Places that callers hold while they use a connection. */
export interface FairGate {
  /**
   * Resolves with what gives the place back, once, or with why there is none; never rejects. No owner gets the last place
   * while it has others, and waiting owners take turns.
   */
  enter(queueKey: QueueKey, waitMs: number, signal?: AbortSignal): Promise<(() => void) | GateRefusal>
  /** Takes a place that is free for this owner now and returns its release; undefined: the owner has to wait, see `enter`. */
  tryEnter(queueKey: QueueKey): (() => void) | undefined
  /** Places in use. */
  held(): number
}

/** The options of a gate. */
export interface GateOptions {
  readonly places: number
  readonly clock: Clock
  readonly onRefusal?: (reason: GateRefusal) => void
}

/** Callers of all owners that may wait; each owner has its share of these. */
const MAX_WAITING = 1_024

interface Waiter {
  readonly queueKey: QueueKey
  admit(leave: () => void): void
}

/** Creates the gate in front of connections that cannot be divided fairly themselves. */
export function createFairGate({ places, clock, onRefusal }: GateOptions): FairGate {
  const quota = createQuota(places)
  const lineQuota = createQuota(MAX_WAITING)
  const line = new FairLine<Waiter>()
  const mayServe = (holder: string): boolean => quota.mayTake(holder)
  const take = (queueKey: QueueKey): (() => void) => {
    const holder = holderOf(queueKey)
    quota.take(holder)
    let left = false
    return () => {
      if (left) return
      left = true
      quota.release(holder)
      pump()
    }
  }
  const pump = (): void => {
    for (let next = line.shift(mayServe); next !== undefined; next = line.shift(mayServe))
      next.admit(take(next.queueKey))
  }
  const refuse = (reason: GateRefusal): GateRefusal => {
    onRefusal?.(reason)
    return reason
  }
  const tryEnter = (queueKey: QueueKey): (() => void) | undefined =>
    line.size === 0 && quota.mayTake(holderOf(queueKey)) ? take(queueKey) : undefined
  return {
    tryEnter,
    enter: (queueKey, waitMs, signal) => {
      if (signal?.aborted === true) return Promise.resolve(refuse('gone'))
      const entry = tryEnter(queueKey)
      if (entry !== undefined) return Promise.resolve(entry)
      const holder = holderOf(queueKey)
      if (waitMs <= 0) return Promise.resolve(refuse('wait'))
      if (!lineQuota.mayTake(holder)) return Promise.resolve(refuse('share'))
      return new Promise((resolve) => {
        const settle = (): void => {
          cancel()
          signal?.removeEventListener('abort', onGone)
          lineQuota.release(holder)
        }
        const waiter: Waiter = {
          queueKey,
          admit: (leave) => {
            settle()
            resolve(leave)
          },
        }
        const end = (reason: GateRefusal): void => {
          line.remove(waiter)
          settle()
          resolve(refuse(reason))
        }
        const onGone = (): void => end('gone')
        const cancel = clock.after(waitMs, () => end('wait'))
        signal?.addEventListener('abort', onGone)
        lineQuota.take(holder)
        line.push(waiter)
        pump()
      })
    },
    held: () => quota.held(),
  }
}
