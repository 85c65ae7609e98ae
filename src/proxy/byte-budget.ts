import type { ServerResponse } from 'node:http'

import { AdapterError } from '../errors.ts'
import { createQuota, holderOf, type QueueKey } from '../upstream/index.ts'

/** The limit on the bytes of request bodies and whole replies that all requests together may hold in memory. */
export type ByteBudget = ReturnType<typeof createByteBudget>
export type HeldBytes = ReturnType<ByteBudget['open']>

/** Releases the bytes when the response closes, because the request and its reply stay in memory until then. */
export function releaseAfterReply(held: HeldBytes, response: ServerResponse): void {
  if (response.closed) held.release()
  else response.once('close', () => held.release())
}

/** Creates a budget that clients share fairly. Calls `onRefusal` for each request that exceeds the budget. */
export function createByteBudget(maxBytes: number, onRefusal?: () => void) {
  const quota = createQuota(maxBytes)
  return {
    open: (queueKey: QueueKey) => {
      const holder = holderOf(queueKey)
      let held = 0
      const add = (count: number): void => {
        quota.take(holder, count)
        held += count
      }
      return {
        /** Counts bytes that are already in memory, even if they exceed the budget. */
        add,
        /** Takes bytes. Throws `ADP_OVERLOADED` if the budget or the client's share of it is exhausted. */
        take: (count: number): void => {
          if (count === 0) return
          if (!quota.mayTake(holder, count)) {
            onRefusal?.()
            throw new AdapterError(
              'ADP_OVERLOADED',
              'Requests of this client, or of all clients, hold too much memory. Nothing was sent. Try again later.',
            )
          }
          add(count)
        },
        /** Releases all bytes of the request. A second call has no effect. */
        release: (): void => {
          quota.release(holder, held)
          held = 0
        },
      }
    },
    held: (): number => quota.held(),
    /** Changes the size of the budget. Requests in progress keep the bytes that they hold. */
    resize: (bytes: number): void => quota.resize(bytes),
  }
}
