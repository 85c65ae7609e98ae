import type { CheckKind } from '../../compare/compared-exchange.ts'
import { checksOf, offerBounds, type OfferedExchange, sizeOf } from '../../compare/live/index.ts'
import type { CompareMetrics } from '../../observability/compare-metrics.ts'
import { createCheckTally } from './check-tally.ts'
import { type CheckCount, type ExchangeHead, headOf, type PostedEnd } from './messages.ts'

/** Exchanges that were offered and whose checks have not all ended. Counts each check: offered = compared + dropped + skipped. */
export interface OpenExchanges {
  /** The number of an exchange that there is room for; undefined: its checks have ended as dropped. */
  offer(exchange: OfferedExchange, refused: 'closed' | 'failed' | undefined): number | undefined
  /** The comparison of an exchange has begun: what it holds from now on is bounded by the thread. */
  begun(id: number): void
  ended(id: number, check: CheckKind, end: PostedEnd): void
  /** Evidence of these checks was kept or lost; until then it is in the memory of the thread. */
  kept(checks: readonly CheckCount[]): void
  /** Ends all checks of an exchange that could not be posted. */
  failed(id: number): void
  /** Ends all checks of a thread that has ended. Evidence that was in its memory only counts as missed. */
  endAll(reason: 'failed' | 'stopped'): void
  /** Exchanges with an open check. */
  count(): number
  /** Checks that count as missed and that the thread does not know of; they are forgotten here. */
  takeMissed(): readonly CheckCount[]
}

interface Open {
  readonly head: ExchangeHead
  readonly checks: Set<CheckKind>
  /** Bytes; 0 once its comparison has begun. */
  held: number
}

/** Creates the exchanges of a process. `onMissed` is called with each check that the thread does not end. */
export function createOpenExchanges(
  metrics: CompareMetrics,
  onMissed: (head: ExchangeHead, check: CheckKind) => void,
): OpenExchanges {
  const exchanges = new Map<number, Open>()
  const missed = createCheckTally()
  /** Of the thread: their evidence waits to be kept. */
  const inMemory = createCheckTally()
  let [ids, waiting, held] = [0, 0, 0]
  const release = (open: Open): void => {
    if (open.held > 0) waiting -= 1
    held -= open.held
    open.held = 0
  }
  const miss = (head: ExchangeHead, check: CheckKind): void => {
    missed.add(head, check, 1)
    onMissed(head, check)
  }
  const end = (id: number, check: CheckKind, how: PostedEnd): ExchangeHead | undefined => {
    const open = exchanges.get(id)
    if (open?.checks.delete(check) !== true) return undefined
    if (open.checks.size === 0) {
      release(open)
      exchanges.delete(id)
    }
    if (how.kind === 'compared') metrics.compared(how.seen)
    else metrics[how.kind](open.head.partner, check, how.reason)
    return open.head
  }
  const endOne = (id: number, reason: 'failed' | 'stopped'): void => {
    for (const check of [...(exchanges.get(id)?.checks ?? [])]) {
      const head = end(id, check, { kind: 'skipped', reason })
      if (head !== undefined) miss(head, check)
    }
  }
  return {
    offer: (exchange, refused) => {
      const head = headOf(exchange)
      const checks = checksOf(exchange)
      const bytes = Math.max(1, sizeOf(exchange))
      const isFull = waiting >= offerBounds.count || held + bytes > offerBounds.bytes
      for (const check of checks) metrics.offered(head.partner, check)
      if (refused !== undefined || isFull) {
        for (const check of checks) {
          metrics.dropped(head.partner, check, refused ?? 'full')
          miss(head, check)
        }
        return undefined
      }
      ids += 1
      exchanges.set(ids, { head, checks: new Set(checks), held: bytes })
      waiting += 1
      held += bytes
      return ids
    },
    begun: (id) => {
      const open = exchanges.get(id)
      if (open !== undefined) release(open)
    },
    ended: (id, check, how) => {
      const head = end(id, check, how)
      if (head !== undefined) inMemory.add(head, check, 1)
    },
    kept: (checks) => inMemory.subtract(checks),
    failed: (id) => endOne(id, 'failed'),
    endAll: (reason) => {
      for (const id of [...exchanges.keys()]) endOne(id, reason)
      for (const { exchange, check, times } of inMemory.take()) missed.add(exchange, check, times)
    },
    count: () => exchanges.size,
    takeMissed: () => {
      const taken = missed.take()
      for (const { exchange, check, times } of taken) inMemory.add(exchange, check, times)
      return taken
    },
  }
}
