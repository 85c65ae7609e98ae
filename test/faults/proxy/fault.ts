import type { Random } from '../../../src/sandbox/random.ts'

export type Fault =
  | { readonly kind: 'pass' }
  /** The request is read and never forwarded, and the connection breaks. */
  | { readonly kind: 'resetBefore' }
  /** The target answers the request, the proxy drops the reply, and the connection breaks. */
  | { readonly kind: 'resetAfter' }
  /** The reply ends after this many bytes, and the connection breaks. */
  | { readonly kind: 'truncate'; readonly bytes: number }
  /** The reply is delayed by this time. */
  | { readonly kind: 'stall'; readonly ms: number }
  | { readonly kind: 'slow'; readonly bytesPerSecond: number }

/** A fault of a whole connection: none, a break at once, or, after this many bytes from the target, a break or a halt of `haltMs`. */
export type ConnectionFault =
  'pass' | 'refuse' | { readonly cutAfter: number } | { readonly haltAfter: number; readonly haltMs: number }

/** Chooses the fault of each connection and each request. */
export interface FaultPlan {
  connection(): ConnectionFault
  request(head: string): Fault
}

/** The probability of each fault, from 0 to 1. Faults that are left out never occur. */
export interface FaultShares {
  readonly refuse?: number
  readonly cut?: number
  readonly halt?: number
  readonly resetBefore?: number
  readonly resetAfter?: number
  readonly truncate?: number
  readonly stall?: number
  readonly slow?: number
}

const MAX_STALL_MS = 400
const MAX_TRUNCATED_BYTES = 2_000
const MAX_CUT_BYTES = 20_000
const MAX_HALT_MS = 1_500

/** Creates a plan that draws from `random`. The same seed gives the same faults for the same requests in the same order. */
export function drawFaults(random: Random, shares: FaultShares): FaultPlan {
  const kinds: [share: number | undefined, draw: () => Fault][] = [
    [shares.resetBefore, () => ({ kind: 'resetBefore' })],
    [shares.resetAfter, () => ({ kind: 'resetAfter' })],
    [shares.truncate, () => ({ kind: 'truncate', bytes: random.below(MAX_TRUNCATED_BYTES) })],
    [shares.stall, () => ({ kind: 'stall', ms: 1 + random.below(MAX_STALL_MS) })],
    [shares.slow, () => ({ kind: 'slow', bytesPerSecond: 2_000 + random.below(20_000) })],
  ]
  return {
    connection: () => {
      const { refuse = 0, cut = 0, halt = 0 } = shares
      const point = random.next()
      if (point < refuse) return 'refuse'
      if (point < refuse + cut) return { cutAfter: random.below(MAX_CUT_BYTES) }
      if (point < refuse + cut + halt)
        return { haltAfter: random.below(MAX_CUT_BYTES), haltMs: 1 + random.below(MAX_HALT_MS) }
      return 'pass'
    },
    request: () => {
      let point = random.next()
      for (const [share = 0, draw] of kinds) {
        if (point < share) return draw()
        point -= share
      }
      return { kind: 'pass' }
    },
  }
}

export const noFaults: FaultPlan = { connection: () => 'pass', request: () => ({ kind: 'pass' }) }
