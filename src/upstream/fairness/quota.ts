import { NEWCOMERS } from './queue-key.ts'

/** A quantity that several holders use at the same time: connections, bytes, places in a line. */
export interface Quota {
  /** Whether the holder may take `count` more now. */
  mayTake(holder: string, count?: number): boolean
  /** Takes `count`, allowed or not. */
  take(holder: string, count?: number): void
  /** Releases a taken amount. */
  release(holder: string, count?: number): void
  /** The amount that all holders have. */
  held(): number
  /** Changes the capacity; amounts that are held stay, even if they exceed it. */
  resize(capacity: number): void
}

/** A holder may have this many times as much as is free: one alone gets eight ninths, two get eight seventeenths each. */
const TIMES_FREE = 8
/** The newcomers get this fraction of all. */
const NEWCOMERS_FRACTION = 1 / 4
/** A smaller quota is given out whole: there is nothing to keep in reserve. */
const SMALLEST_DIVIDED = 4

/**
 * Creates a quota that keeps a reserve for the next holder. The limit of a holder is not a fixed number but a multiple of
 * the free amount (dynamic thresholds, as switches divide their packet memory): a holder that is alone may use nearly all of it,
 * each further one lowers the limit of the others, and the last unit goes to a holder that has none.
 */
export function createQuota(initialCapacity: number): Quota {
  let capacity = initialCapacity
  const holdings = new Map<string, { held: number }>()
  let free = capacity
  return {
    mayTake: (holder, count = 1) => {
      if (count > free) return false
      const own = holdings.get(holder)?.held ?? 0
      if (capacity < SMALLEST_DIVIDED) return true
      if (holder === NEWCOMERS && own + count > Math.floor(capacity * NEWCOMERS_FRACTION)) return false
      return own <= TIMES_FREE * (free - count)
    },
    take: (holder, count = 1) => {
      free -= count
      const own = holdings.get(holder)
      if (own === undefined) holdings.set(holder, { held: count })
      else own.held += count
    },
    release: (holder, count = 1) => {
      free += count
      const own = holdings.get(holder)
      if (own === undefined) return
      own.held -= count
      if (own.held <= 0) holdings.delete(holder)
    },
    held: () => capacity - free,
    resize: (changed) => {
      free += changed - capacity
      capacity = changed
    },
  }
}
