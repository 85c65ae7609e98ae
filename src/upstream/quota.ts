/** The client that calls, connections and bytes are charged to: queues and quotas are divided by it. */
export interface QueueKey {
  readonly partner: string
  /** Unique over all partners. */
  readonly owner: string
  /** False until V3 has accepted the credentials that the request showed. */
  isAccepted(): boolean
}

/** The holder that stands for all clients whose credentials V3 has not accepted yet. */
export const NEWCOMERS = ''

/** The key of callers that divide nothing between clients. */
export const soleQueue: QueueKey = { partner: '-', owner: '-', isAccepted: () => true }

/** The holder whose quota is charged now: the owner, or all newcomers together. */
export function holderOf(queueKey: QueueKey): string {
  return queueKey.isAccepted() ? queueKey.owner : NEWCOMERS
}

/** A quantity that several holders use at the same time: connections, bytes, places in a queue. */
export interface Quota {
  /** Whether the holder may take `count` more now. */
  mayTake(holder: string, count?: number): boolean
  /** Takes `count`, allowed or not. */
  take(holder: string, count?: number): void
  release(holder: string, count?: number): void
  /** The amount that all holders have. */
  held(): number
  /** Changes the capacity; amounts that are held stay, even if they exceed it. */
  resize(capacity: number): void
}

/** A holder may have this many times as much as is free: one alone gets eight ninths, two get eight seventeenths each. */
const TIMES_FREE = 8
/** Newcomers together get at most this fraction of the capacity. */
const NEWCOMERS_FRACTION = 1 / 4
/** A smaller quota is given out whole: there is nothing to keep in reserve. */
const SMALLEST_DIVIDED = 4

/**
 * Creates a quota that keeps a reserve for the next holder. The limit of a holder is not a fixed number but a multiple of the
 * free amount (dynamic thresholds, as switches divide their packet memory): a holder that is alone may use nearly all of it,
 * each further one lowers the limit of the others, and the last unit goes to a holder that has none (decision 008).
 */
export function createQuota(initialCapacity: number): Quota {
  let capacity = initialCapacity
  let total = 0
  const holdings = new Map<string, { held: number }>()
  return {
    mayTake: (holder, count = 1) => {
      const free = capacity - total
      if (count > free) return false
      const own = holdings.get(holder)?.held ?? 0
      if (capacity < SMALLEST_DIVIDED) return true
      if (holder === NEWCOMERS && own + count > Math.floor(capacity * NEWCOMERS_FRACTION)) return false
      return own <= TIMES_FREE * (free - count)
    },
    take: (holder, count = 1) => {
      total += count
      const own = holdings.get(holder)
      if (own === undefined) holdings.set(holder, { held: count })
      else own.held += count
    },
    release: (holder, count = 1) => {
      total -= count
      const own = holdings.get(holder)
      if (own === undefined) return
      own.held -= count
      if (own.held <= 0) holdings.delete(holder)
    },
    held: () => total,
    resize: (changed) => {
      capacity = changed
    },
  }
}
