import type { IncomingMessage } from 'node:http'

import type { AdapterError } from '../errors.ts'
import { createForwarder, type Forwarder, type ForwarderOptions, giveUpUpload } from './forwarder.ts'

/** The forwarders to all base addresses of V2. */
export interface Relays {
  of(baseUrl: URL): Forwarder
  /** What to answer when the upload of a request to V2 or V3 is given up, see `giveUpUpload`. */
  uploadLost(request: IncomingMessage): AdapterError
  /** Connections in use. */
  held(): number
  close(): Promise<void>
}

/** With more of them the oldest is forgotten: its calls end as they would, and idle connections close themselves. */
const MAX_RELAYS = 1_000
/** A client that takes longer over its upload than this, or over 64 KiB of it, is streamed to V2 as it comes. */
const ARRIVAL_MS = 100

/** Creates forwarders as they are needed: partners may have a gateway of their own, and a reload may add one. */
export function createRelays(
  options: Omit<ForwarderOptions, 'baseUrl' | 'outcomeUnknown' | 'arrivalMs'>,
): Relays {
  const relays = new Map<string, Forwarder>()
  const side = { outcomeUnknown: 'ADP_V2_OUTCOME_UNKNOWN', arrivalMs: ARRIVAL_MS } as const
  return {
    of: (baseUrl) => {
      const known = relays.get(baseUrl.href)
      if (known !== undefined) return known
      const [oldest] = relays.size < MAX_RELAYS ? [] : relays.keys()
      if (oldest !== undefined) relays.delete(oldest)
      const relay = createForwarder({ ...options, ...side, baseUrl })
      relays.set(baseUrl.href, relay)
      return relay
    },
    uploadLost: (request) => giveUpUpload(options.uploads, request),
    held: () => [...relays.values()].reduce((sum, relay) => sum + relay.held(), 0),
    close: async () => {
      await Promise.all([...relays.values()].map((relay) => relay.close()))
    },
  }
}
