import type { Clock } from '../../clock.ts'
import type { FairGate, QueueKey } from '../../upstream/index.ts'
import type { ReadOutcome, V3Reader } from './read-client.ts'
import type { V3Credentials } from './v3-client.ts'

/** `busy`: no connection became free for this owner in time; nothing was sent. */
export type SharedReadOutcome = ReadOutcome | { readonly kind: 'busy' }

/** A reader whose connections are divided between owners. */
export interface SharedReader {
  /** As `V3Reader.get`, with a connection of this share; the wait for it is part of `timeoutMs`. */
  get(
    resource: string,
    query: string,
    credentials: V3Credentials,
    signal: AbortSignal | undefined,
    timeoutMs: number,
    queueKey: QueueKey,
  ): Promise<SharedReadOutcome>
  close(): Promise<void>
}

/** Creates it over a reader with as many connections as the gate has places; no call waits longer than `acquireMs`. */
export function createSharedReader(
  reader: V3Reader,
  gate: FairGate,
  acquireMs: number,
  clock: Clock,
): SharedReader {
  return {
    get: async (resource, query, credentials, signal, timeoutMs, queueKey) => {
      const deadlineMs = clock.nowMs() + timeoutMs
      const entry = await gate.enter(queueKey, Math.min(acquireMs, Math.max(0, timeoutMs)), signal)
      if (typeof entry !== 'function') {
        signal?.throwIfAborted()
        return { kind: 'busy' }
      }
      try {
        return await reader.get(resource, query, credentials, signal, deadlineMs - clock.nowMs())
      } finally {
        entry()
      }
    },
    close: () => reader.close(),
  }
}
