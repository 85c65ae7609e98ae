import { AdapterError } from '../errors.ts'

/** Bytes of request bodies that are held at the same time, over all requests. */
export interface ByteBudget {
  /** Takes bytes; error `ADP_OVERLOADED` when the budget is spent. */
  take(count: number): void
  release(count: number): void
  /** What is taken now. */
  held(): number
}

/** Creates a budget of `maxBytes`. Refusing early with 503 keeps the memory bounded whatever the clients send. */
export function createByteBudget(maxBytes: number): ByteBudget {
  let held = 0
  return {
    take: (count) => {
      if (held + count > maxBytes) {
        throw new AdapterError(
          'ADP_OVERLOADED',
          'Too many batches are under way. Nothing was posted; send it again later.',
        )
      }
      held += count
    },
    release: (count) => {
      held -= count
    },
    held: () => held,
  }
}
