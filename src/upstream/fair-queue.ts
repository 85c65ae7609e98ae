import type { Clock } from '../clock.ts'

/** The client that a queue or quota charges for calls, connections and bytes. */
export interface QueueKey {
  readonly partner: string
  /** Unique across partners. */
  readonly owner: string
  /** Returns true once V3 has accepted the credentials of the request. */
  isAccepted(): boolean
}

/** The holder that stands for all clients whose credentials V3 has not accepted yet. */
export const NEWCOMERS = ''

/** The key of callers that do not divide anything between clients. */
export const soleQueue: QueueKey = { partner: '-', owner: '-', isAccepted: () => true }

/** Returns the holder that is charged now: the owner, or all newcomers together. */
export function holderOf(queueKey: QueueKey): string {
  return queueKey.isAccepted() ? queueKey.owner : NEWCOMERS
}

/** A quantity that several holders use at the same time: connections, bytes or places in a queue. */
export interface Quota {
  mayTake(holder: string, count?: number): boolean
  /** Takes `count` without checking the limit. */
  take(holder: string, count?: number): void
  release(holder: string, count?: number): void
  held(): number
  /** Changes the capacity. Holders keep what they have, even if the total exceeds the new capacity. */
  resize(capacity: number): void
}

/** A holder may have this many times the free amount: one holder alone gets eight ninths, two holders get eight seventeenths each. */
const TIMES_FREE = 8
/** The fraction of the capacity that all newcomers together may have. */
const NEWCOMERS_FRACTION = 1 / 4
/** A smaller quota is given out whole, because there is nothing to keep in reserve. */
const SMALLEST_DIVIDED = 4

/**
 * Creates a quota that keeps a reserve for the next holder. A holder's limit is a multiple of the free amount (dynamic thresholds, as
 * switches divide their packet memory): a single holder may use nearly all of it, each further holder lowers the limit of the others, and
 * the last unit goes to a holder that has none (decision 008).
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

/** The purpose of a call. Writes go before reads, and reads before comparison. */
export type CallPriority = 'write' | 'read' | 'comparison'

const priorities: readonly CallPriority[] = ['write', 'read', 'comparison']

/** `full`: too many calls of the owner wait already. `deadline`: the wait ended. `gone`: the caller has disconnected. */
export type Refusal = 'full' | 'deadline' | 'gone'

/** What admitted calls consume: tokens of a rate limit, or connections. */
interface Supply {
  mayTake(holder: string): boolean
  take(holder: string): void
}

/** A call that waits for admission. Either `admit` or `refuse` is called, once, immediately or later. */
interface QueuedCall {
  readonly queueKey: QueueKey
  readonly priority: CallPriority
  /** Longest wait in milliseconds. If `undefined`, the call waits without limit, and its caller bounds how many calls wait. */
  readonly waitMs?: number | undefined
  /** Called if the call has to wait. Aborting the returned signal gives the place in the queue back. */
  readonly signal?: (() => AbortSignal) | undefined
  /** Called when the call may be sent; `holder` is charged. */
  admit(holder: string): void
  refuse(reason: Refusal): void
}

type Waiter = Pick<QueuedCall, 'queueKey' | 'admit'>

/**
 * Admits calls as the supply allows and queues the others by priority. Within a priority, partners take turns; within a partner, owners
 * take turns; and each owner's calls stay in order. All owners that V3 has not accepted share one turn, as if they were one more partner.
 */
export class FairQueue {
  private readonly supply: Supply
  private readonly clock: Clock
  private readonly places
  private readonly lines: Readonly<Record<CallPriority, FairLine>> = {
    write: new FairLine(),
    read: new FairLine(),
    comparison: new FairLine(),
  }
  private isServing = false

  /** `maxWaiting` is the number of calls that may wait at the same time, divided between owners. */
  constructor(supply: Supply, clock: Clock, maxWaiting: number) {
    this.supply = supply
    this.clock = clock
    this.places = createQuota(maxWaiting)
  }

  get size(): number {
    return this.lines.write.size + this.lines.read.size + this.lines.comparison.size
  }

  sizeOf(priority: CallPriority): number {
    return this.lines[priority].size
  }

  enter(call: QueuedCall): void {
    const { queueKey, priority, waitMs } = call
    const { places, supply } = this
    const line = this.lines[priority]
    const holder = holderOf(queueKey)
    const isBounded = waitMs !== undefined
    const isOver = isBounded && waitMs <= 0
    if (!isOver && this.size === 0 && supply.mayTake(holder)) {
      supply.take(holder)
      call.admit(holder)
      return
    }
    const signal = call.signal?.()
    if (signal?.aborted === true || isOver || (isBounded && !places.mayTake(holder))) {
      call.refuse(signal?.aborted === true ? 'gone' : isOver ? 'deadline' : 'full')
      return
    }
    if (!isBounded && signal === undefined) {
      line.push(call)
      this.serve()
      return
    }
    if (isBounded) places.take(holder)
    const releasePlace = (): void => {
      if (isBounded) places.release(holder)
      cancel?.()
      signal?.removeEventListener('abort', onGone)
    }
    const waiter: Waiter = {
      queueKey,
      admit: (charged) => {
        releasePlace()
        call.admit(charged)
      },
    }
    const giveUp = (reason: Refusal): void => {
      line.remove(waiter)
      releasePlace()
      call.refuse(reason)
    }
    const onGone = (): void => giveUp('gone')
    const cancel = isBounded ? this.clock.after(waitMs, () => giveUp('deadline')) : undefined
    signal?.addEventListener('abort', onGone)
    line.push(waiter)
    this.serve()
  }

  /** Admits waiting calls. Must be called when the supply has grown. */
  serve(): void {
    // A call that ends at once must not admit the next one from within, because thousands of calls would nest.
    if (this.isServing) return
    this.isServing = true
    for (let next = this.shift(); next !== undefined; next = this.shift()) {
      const holder = holderOf(next.queueKey)
      this.supply.take(holder)
      next.admit(holder)
    }
    this.isServing = false
  }

  private shift(): Waiter | undefined {
    for (const priority of priorities) {
      const next = this.lines[priority].shift(this.supply)
      if (next !== undefined) return next
    }
    return undefined
  }
}

/** The waiting calls of one priority. The maps are in the order of turns: a partner or owner that was served moves to the end. */
class FairLine {
  /** Owners by partner, or all newcomers, with their calls in the order of arrival. */
  private readonly groups = new Map<string, Map<string, Waiter[]>>()
  private count = 0

  get size(): number {
    return this.count
  }

  push(waiter: Waiter): void {
    // Keeps first-in, first-out order for calls that were queued before V3 accepted the owner.
    this.promote()
    this.add(waiter)
    this.count += 1
  }

  remove(waiter: Waiter): void {
    const { partner, owner } = waiter.queueKey
    for (const name of [NEWCOMERS, partner]) {
      const owners = this.groups.get(name)
      const waiters = owners?.get(owner)
      const index = waiters?.indexOf(waiter) ?? -1
      if (owners === undefined || waiters === undefined || index < 0) continue
      waiters.splice(index, 1)
      if (waiters.length === 0) owners.delete(owner)
      if (owners.size === 0) this.groups.delete(name)
      this.count -= 1
      return
    }
  }

  shift(supply: Supply): Waiter | undefined {
    if (this.count === 0) return undefined
    this.promote()
    for (const [name, owners] of this.groups) {
      for (const [owner, waiters] of owners) {
        if (!supply.mayTake(name === NEWCOMERS ? NEWCOMERS : owner)) continue
        const next = waiters.shift()
        this.count -= 1
        if (waiters.length === 0) owners.delete(owner)
        else moveToEnd(owners, owner, waiters)
        if (owners.size === 0) this.groups.delete(name)
        else moveToEnd(this.groups, name, owners)
        return next
      }
    }
    return undefined
  }

  private add(waiter: Waiter): void {
    const { queueKey } = waiter
    const name = queueKey.isAccepted() ? queueKey.partner : NEWCOMERS
    const owners = this.groups.get(name) ?? new Map<string, Waiter[]>()
    this.groups.set(name, owners)
    const waiters = owners.get(queueKey.owner)
    if (waiters === undefined) owners.set(queueKey.owner, [waiter])
    else waiters.push(waiter)
  }

  /** Moves owners that V3 has accepted in the meantime to their partner. */
  private promote(): void {
    const newcomers = this.groups.get(NEWCOMERS)
    if (newcomers === undefined) return
    for (const [owner, waiters] of newcomers) {
      if (waiters[0]?.queueKey.isAccepted() !== true) continue
      newcomers.delete(owner)
      for (const waiter of waiters) this.add(waiter)
    }
    if (newcomers.size === 0) this.groups.delete(NEWCOMERS)
  }
}

/** Moves an entry to the end of its map. */
function moveToEnd<Value>(map: Map<string, Value>, key: string, value: Value): void {
  if (map.size === 1) return
  map.delete(key)
  map.set(key, value)
}
