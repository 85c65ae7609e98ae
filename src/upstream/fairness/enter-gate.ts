import { AdapterError } from '../../errors.ts'
import type { FairGate } from './fair-gate.ts'
import type { QueueKey } from './queue-key.ts'

/**
 * Waits at the gate for a connection to V3 and resolves with the function that releases it. Error: `ADP_OVERLOADED` when none became free
 * for this client in time; nothing was sent. Rejects with the signal's reason once the client has gone.
 */
export async function enterGate(
  gate: FairGate,
  queueKey: QueueKey,
  waitMs: number,
  signal: AbortSignal,
): Promise<() => void> {
  const entry = await gate.enter(queueKey, waitMs, signal)
  if (typeof entry === 'function') return entry
  signal.throwIfAborted()
  throw noConnection()
}

/** All connections of the client's share are in use. */
export function noConnection(): AdapterError {
  return new AdapterError(
    'ADP_OVERLOADED',
    'No connection to the service became free for this client. Nothing was sent; try again later.',
  )
}
