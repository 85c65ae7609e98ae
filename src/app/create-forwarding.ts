import { systemClock } from '../clock.ts'
import type { Config } from '../config/index.ts'
import type { Events } from '../observability/events.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { AcceptedCredentials, createQueueKeys } from '../partners/index.ts'
import { type createByteBudget, createPassThrough, createRelays } from '../proxy/index.ts'
import type { Refusal } from '../upstream/index.ts'

/** To each address of V2. */
const V2_CONNECTIONS = 64

/** Counts requests that get no connection. */
export function countRefusals(
  { shareRefused }: Pick<Metrics, 'shareRefused'>,
  resource: 'pass_through' | 'read' | 'relay',
): (reason: Refusal) => void {
  const reasons = { full: 'share', deadline: 'wait', gone: 'gone' } as const
  return (reason) => shareRefused({ resource, reason: reasons[reason] })
}

export interface ForwardingParts {
  readonly config: Config
  readonly accepted: AcceptedCredentials
  readonly queueKeys: ReturnType<typeof createQueueKeys>
  readonly byteBudget: ReturnType<typeof createByteBudget>
  readonly metrics: Pick<Metrics, 'shareRefused' | 'called' | 'relayed'>
  readonly events: Events
  readonly nowMs: () => number
}

/** What sends requests on as they are: pass-through to V3, and relays to V2. */
export function createForwarding(parts: ForwardingParts): {
  readonly passThrough: ReturnType<typeof createPassThrough>
  readonly relays: ReturnType<typeof createRelays>
} {
  const { config, accepted, queueKeys, byteBudget, metrics, events, nowMs } = parts
  const { v3, v2 } = config.upstreams
  const { acquireMs } = config.tuning
  const shared = { byteBudget, acquireMs, clock: systemClock, events, uploads: new WeakMap() }
  const passThrough = createPassThrough({
    ...shared,
    accepted,
    queueKeys,
    nowMs,
    baseUrl: v3.baseUrl,
    allow: config.passThrough.allow,
    rewriteLinks: config.passThrough.rewriteLinks,
    connections: v3.connections,
    // One time for the status line and for each piece of a body, as clients of the service know it.
    timeouts: { ...v3.timeouts, bodyMs: v3.timeouts.headersMs },
    onCall: ({ status, durationMs }) => metrics.called({ kind: 'passThrough', status, durationMs }),
    onFailure: (reason) =>
      events.passThroughFailed({ reason: reason === 'brokenReply' ? reason : 'unreachable' }),
    onRefusal: countRefusals(metrics, 'pass_through'),
  })
  const relays = createRelays({
    ...shared,
    connections: V2_CONNECTIONS,
    timeouts: { ...(v2 ?? v3).timeouts, bodyMs: v3.timeouts.bodyMs },
    onCall: ({ isRead, ...call }) => metrics.relayed({ kind: isRead ? 'read' : 'write', ...call }),
    onFailure: (reason) => events.relayFailed({ reason }),
    onRefusal: countRefusals(metrics, 'relay'),
  })
  return { passThrough, relays }
}
