import type { ServerResponse } from 'node:http'

import { AdapterError } from '../errors.ts'
import { createQuota, holderOf, type QueueKey } from '../upstream/index.ts'

/** Bytes of request bodies and complete replies that are held at the same time, over all requests. */
export type ByteBudget = ReturnType<typeof createByteBudget>
/** The bytes that one request holds in memory. */
export type HeldBytes = ReturnType<ByteBudget['open']>

/** Releases when the reply has left or its client has: as long as it lasts, request and reply are in memory. */
export function releaseAfterReply(held: HeldBytes, response: ServerResponse): void {
  if (response.closed) held.release()
  else response.once('close', () => held.release())
}

/**
 * Creates a budget of `maxBytes`, divided between clients. Refusing early with 503 keeps the memory bounded whatever the
 * clients send; `onRefusal` counts the refusals.
 */
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
        /** Counts bytes that are in memory whatever the budget has left. */
        add,
        /** Takes bytes; error `ADP_OVERLOADED` when the budget, or the share of the client in it, is spent. */
        take: (count: number): void => {
          if (count === 0) return
          if (!quota.mayTake(holder, count)) {
            onRefusal?.()
            throw new AdapterError(
              'ADP_OVERLOADED',
              'Too many bytes of this client, or of all clients, are being processed. Nothing was sent; try again later.',
            )
          }
          add(count)
        },
        /** Gives everything back; more than once changes nothing. */
        release: (): void => {
          quota.release(holder, held)
          held = 0
        },
      }
    },
    /** The bytes in use. */
    held: (): number => quota.held(),
    /** Changes the size; requests under way keep what they hold. */
    resize: (bytes: number): void => quota.resize(bytes),
  }
}
