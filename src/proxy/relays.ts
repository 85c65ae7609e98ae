import type { IncomingMessage } from 'node:http'

import type { AdapterError } from '../errors.ts'
import { createFairGate, type FairGate, type GateRefusal } from '../upstream/index.ts'
import { slowUploadOf } from './lost-request.ts'
import { createRelay, createRelayedCalls, type Relay, type RelayOptions } from './relay.ts'
import { createRelayedFields } from './relayed-fields.ts'

export interface RelaysOptions extends Omit<RelayOptions, 'baseUrl' | 'gate' | 'fields' | 'calls'> {
  /** Called when a request gets no connection to V2. */
  readonly onRefusal: (reason: GateRefusal) => void
}

/** The relays of all base addresses of V2. */
export interface Relays {
  of(baseUrl: URL): Relay
  /**
   * What to answer when the upload of this request is given up, which ends its call: it may have been applied where a part of it
   * was sent on. Undefined: the request is not relayed.
   */
  uploadLost(request: IncomingMessage): AdapterError | undefined
  /** Connections in use. */
  held(): number
  close(): void
}

/** With more of them the oldest is forgotten: its calls end as they would, and idle connections close themselves. */
const MAX_RELAYS = 1_000

/** Creates relays as they are needed: partners may have a gateway of their own, and a reload may add one. */
export function createRelays(options: RelaysOptions): Relays {
  const { connections, clock, onRefusal } = options
  const shared = { ...options, fields: createRelayedFields(), calls: createRelayedCalls() }
  const relays = new Map<string, { readonly relay: Relay; readonly gate: FairGate }>()
  return {
    of: (baseUrl) => {
      const known = relays.get(baseUrl.href)
      if (known !== undefined) return known.relay
      const [oldest] = relays.size < MAX_RELAYS ? [] : relays.keys()
      if (oldest !== undefined) relays.delete(oldest)
      const gate = createFairGate({ places: connections, clock, onRefusal })
      const relay = createRelay({ ...shared, gate, baseUrl })
      relays.set(baseUrl.href, { relay, gate })
      return relay
    },
    uploadLost: (request) => {
      const call = shared.calls.get(request)
      if (call === undefined) return undefined
      const hasLeft = call !== 'waiting' && call.hasLeft()
      const error = slowUploadOf(request.method, hasLeft, 'ADP_V2_OUTCOME_UNKNOWN')
      // Later: its failure must find the answer that the caller gives now.
      if (call !== 'waiting') queueMicrotask(() => call.fail(error))
      return error
    },
    held: () => [...relays.values()].reduce((sum, { gate }) => sum + gate.held(), 0),
    close: () => {
      for (const { relay } of relays.values()) relay.close()
    },
  }
}
