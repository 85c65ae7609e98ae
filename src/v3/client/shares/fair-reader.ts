import type { ReadOutcome, V3Reader } from '../read-client.ts'
import type { V3Credentials } from '../v3-client.ts'
import type { FairGate } from './fair-gate.ts'
import type { Share } from './share.ts'

/** `busy`: no connection became free for this owner in time; nothing was sent. */
export type SharedReadOutcome = ReadOutcome | { readonly kind: 'busy' }

/** A reader whose connections are divided between owners. */
export interface SharedReader {
  /** As `V3Reader.get`, with a connection of this share. */
  get(
    resource: string,
    query: string,
    credentials: V3Credentials,
    signal: AbortSignal,
    share: Share,
  ): Promise<SharedReadOutcome>
  close(): Promise<void>
}

/** Creates it over a reader with as many connections as the gate has places; no call waits longer than `acquireMs`. */
export function createSharedReader(reader: V3Reader, gate: FairGate, acquireMs: number): SharedReader {
  return {
    get: async (resource, query, credentials, signal, share) => {
      const entry = await gate.enter(share, acquireMs, signal)
      if (typeof entry !== 'function') {
        signal.throwIfAborted()
        return { kind: 'busy' }
      }
      try {
        return await reader.get(resource, query, credentials, signal)
      } finally {
        entry()
      }
    },
    close: () => reader.close(),
  }
}
