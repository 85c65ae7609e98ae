import type { Clock } from '../clock.ts'

/** The client whose share is charged for calls, connections or bytes. */
export interface QueueKey {
  readonly partner: string
  /** The id of the owner (partner, key and token claims), unique across all partners. */
  readonly owner: string
  /** Returns true once V3 or V2 has accepted the credentials of the request. */
  isAccepted(): boolean
}

/** The holder that all newcomers share. A newcomer is a client whose credentials neither V3 nor V2 has accepted yet. */
export const NEWCOMERS = ''

/** The queue key of callers that do not divide a resource between clients. */
export const soleQueue: QueueKey = { partner: '-', owner: '-', isAccepted: () => true }

/** Returns the holder to charge now: the owner if its credentials were accepted, and otherwise `NEWCOMERS`. */
export function holderOf(queueKey: QueueKey): string {
  return queueKey.isAccepted() ? queueKey.owner : NEWCOMERS
}

/** A resource of limited quantity that several holders use at the same time: connections, bytes or places in a queue. */
export interface Quota {
  mayTake(holder: string, count?: number): boolean
  /** Takes `count` without checking the limit. */
  take(holder: string, count?: number): void
  release(holder: string, count?: number): void
  held(): number
  /** Changes the capacity. Holders keep what they hold, even if the total then exceeds the capacity. */
  resize(capacity: number): void
}

/** The maximum ratio of what one holder holds to what is free. A single holder gets at most 8/9 of the capacity, and each of two holders 8/17. */
const TIMES_FREE = 8
/** The fraction of the capacity that all newcomers together may hold. */
const NEWCOMERS_FRACTION = 1 / 4
/** The smallest capacity that is divided between holders. One holder may use up a smaller quota. */
const SMALLEST_DIVIDED = 4

/**
 * Creates a quota that keeps a reserve for the next holder. The limit of a holder is a multiple of the free amount, like the dynamic
 * thresholds by which switches divide their packet memory. A single holder may use nearly all of the capacity. Each further holder lowers
 * the limit of the other holders. The last free unit of the capacity goes only to a holder that holds nothing yet (decision 008).
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

/** The purpose of a call. Writes are served before reads, and reads before comparison. */
export type CallPriority = 'write' | 'read' | 'comparison'

const priorities: readonly CallPriority[] = ['write', 'read', 'comparison']

/**
 * Why a call was refused: too many calls of the owner are waiting (`full`), the wait was too long (`deadline`), or the caller has
 * disconnected (`gone`).
 */
export type Refusal = 'full' | 'deadline' | 'gone'

/** The resource of which each admitted call takes one unit: a token of a rate limit, or a connection. */
interface Supply {
  mayTake(holder: string): boolean
  take(holder: string): void
}

/** A call that asks for admission. The queue calls either `admit` or `refuse`, exactly once, immediately or later. */
interface QueuedCall {
  readonly queueKey: QueueKey
  readonly priority: CallPriority
  /** Maximum wait in milliseconds. If `undefined`, the call waits without limit, and its caller must limit how many calls wait. */
  readonly waitMs?: number | undefined
  /** Returns a signal that releases the place in the queue when it aborts. Called only if the call is not admitted at once. */
  readonly signal?: (() => AbortSignal) | undefined
  /** Called when the call may be sent. `holder` is the owner that was charged, or `NEWCOMERS`. */
  admit(holder: string): void
  refuse(reason: Refusal): void
}

type Waiter = Pick<QueuedCall, 'queueKey' | 'admit'>

/**
 * Admits calls as the supply allows, and queues all other calls by priority. Within a priority the partners take turns, and within a
 * partner the owners take turns. The calls of one owner stay in order. All newcomers share one turn, as if they were
 * one more partner.
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

  /** `maxWaiting` is the maximum number of calls with `waitMs` that wait at the same time. Owners share this number. */
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

  /** Admits waiting calls. The caller must call `serve` whenever the supply has grown. */
  serve(): void {
    // Prevents recursion: an admitted call that ends at once calls `serve` again, and thousands of such calls would nest.
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

/** The waiting calls of one priority. Its maps are in the order of turns: a partner or owner that was served moves to the end. */
class FairLine {
  /** Maps each partner, and `NEWCOMERS`, to its owners, and each owner to its calls in the order of arrival. */
  private readonly groups = new Map<string, Map<string, Waiter[]>>()
  private count = 0

  get size(): number {
    return this.count
  }

  push(waiter: Waiter): void {
    // Moves accepted newcomers to their partner first, so that their earlier calls stay ahead of later calls of the same owner.
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

  /** Moves newcomers that V3 or V2 has accepted in the meantime to their partner. */
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

function moveToEnd<Value>(map: Map<string, Value>, key: string, value: Value): void {
  if (map.size === 1) return
  map.delete(key)
  map.set(key, value)
}
