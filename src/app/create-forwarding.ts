import { systemClock } from '../clock.ts'
import type { Config } from '../config/index.ts'
import type { Events } from '../observability/events.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { AcceptedCredentials, createQueueKeys } from '../partners/index.ts'
import { type createByteBudget, createPassThrough, createRelays } from '../proxy/index.ts'
import { createFairGate, type FairGate } from '../upstream/index.ts'

type Refusals = Pick<Metrics, 'shareRefused'>

/** To each address of V2. */
const V2_CONNECTIONS = 64

/** The gates in front of the connections to V3: for requests that are passed through, and for reads. */
export function createGates(
  places: number,
  { shareRefused }: Refusals,
): Readonly<Record<'pass_through' | 'read', FairGate>> {
  const gateOf = (resource: 'pass_through' | 'read'): FairGate =>
    createFairGate({
      places,
      clock: systemClock,
      onRefusal: (reason) => shareRefused({ resource, reason }),
    })
  return { pass_through: gateOf('pass_through'), read: gateOf('read') }
}

export interface ForwardingParts {
  readonly config: Config
  readonly gate: FairGate
  readonly accepted: AcceptedCredentials
  readonly queueKeys: ReturnType<typeof createQueueKeys>
  readonly byteBudget: ReturnType<typeof createByteBudget>
  readonly metrics: Refusals & Pick<Metrics, 'called' | 'relayed'>
  readonly events: Events
  readonly nowMs: () => number
}

/** What sends requests on as they are: pass-through to V3, and relays to V2. */
export function createForwarding(parts: ForwardingParts): {
  readonly passThrough: ReturnType<typeof createPassThrough>
  readonly relays: ReturnType<typeof createRelays>
} {
  const { config, gate, accepted, queueKeys, byteBudget, metrics, events, nowMs } = parts
  const { v3, v2 } = config.upstreams
  const { acquireMs } = config.tuning
  const passThrough = createPassThrough({
    accepted,
    baseUrl: v3.baseUrl,
    allow: config.passThrough.allow,
    rewriteLinks: config.passThrough.rewriteLinks,
    connections: v3.connections,
    gate,
    acquireMs,
    queueKeys,
    byteBudget,
    // One time for the status line and for each piece of a body, as clients of the service know it.
    timeouts: { ...v3.timeouts, bodyMs: v3.timeouts.headersMs },
    onCall: metrics.called,
    events,
    clock: systemClock,
    nowMs,
  })
  const relays = createRelays({
    connections: V2_CONNECTIONS,
    acquireMs,
    timeouts: { ...(v2 ?? v3).timeouts, bodyMs: v3.timeouts.bodyMs },
    byteBudget,
    onCall: metrics.relayed,
    onRefusal: (reason) => metrics.shareRefused({ resource: 'relay', reason }),
    clock: systemClock,
    events,
  })
  return { passThrough, relays }
}
