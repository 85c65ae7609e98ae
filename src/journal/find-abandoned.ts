import type { TakenOver } from './journal.ts'
import { readOpen, readOwnOpen } from './lease/take-over.ts'
import type { Store } from './store/store.ts'

/** Finds batches of this instance that nothing works on, and knows the calls that may still lead to work. */
export interface AbandonedSearch {
  /** Says that a call begins which may open records, and gives what is to be called when it is known what it did. */
  beginCall(): () => void
  /** As `Journal.findAbandoned`. */
  find(instance: number, isAttended: (batch: number) => boolean): Promise<readonly TakenOver[]>
}

/** Creates the search in a store. */
export function createAbandonedSearch(store: Store): AbandonedSearch {
  /** Calls by their number, in their order. */
  const pending = new Set<number>()
  let calls = 0
  /** Unattended batches with the number of the first call that came after they were seen. */
  let candidates = new Map<number, number>()

  /** True once every call has ended that was made before this one. */
  const isSettledBefore = (call: number): boolean => {
    const [oldest] = pending
    return oldest === undefined || oldest >= call
  }
  return {
    beginCall: () => {
      const number = calls++
      pending.add(number)
      return () => pending.delete(number)
    },
    find: async (instance, isAttended) => {
      const own = await readOwnOpen(store.db, instance)
      const before = candidates
      candidates = new Map()
      const abandoned: number[] = []
      for (const batch of own) {
        if (isAttended(batch)) continue
        const firstCall = before.get(batch)
        if (firstCall !== undefined && isSettledBefore(firstCall)) abandoned.push(batch)
        candidates.set(batch, firstCall ?? calls)
      }
      return abandoned.length === 0 ? [] : readOpen(store.db, instance, abandoned)
    },
  }
}
