import type { Fault } from '../control/fault.ts'
import { rateLimitReply } from '../security/gateway.ts'
import { gatewayError } from './reply.ts'
import type { Reply } from './reply.ts'

/** The combined effect of all faults that match one request. */
export interface Disturbance {
  readonly latencyMs: number
  /** Sent instead of handling the request. */
  readonly reply?: Reply
  /** The connection is reset, or never answered, before the request is applied or after. */
  readonly loss?: { readonly how: 'reset' | 'stall'; readonly apply: boolean }
  readonly staleRead: boolean
  /** The reply ends after this number of bytes of its body. */
  readonly truncateAt?: number
  readonly brokenGzip: boolean
  readonly bytesPerSecond?: number
}

/** Joins the faults of one request; of two that exclude each other the later counts. */
export function joinFaults(faults: readonly Fault[]): Disturbance {
  let joined: Disturbance = { latencyMs: 0, staleRead: false, brokenGzip: false }
  for (const fault of faults) joined = { ...joined, ...effectOf(fault, joined) }
  return joined
}

function effectOf(fault: Fault, before: Disturbance): Partial<Disturbance> {
  switch (fault.kind) {
    case 'latency':
      return { latencyMs: before.latencyMs + fault.ms }
    case 'status':
      return { reply: statusReply(fault.status, fault.body, fault.headers) }
    case 'rateLimit':
      return { reply: rateLimitReply(fault.retryAfterSeconds) }
    case 'reset':
    case 'stall':
      return { loss: { how: fault.kind, apply: fault.apply } }
    case 'truncate':
      return { truncateAt: fault.bytes }
    case 'brokenGzip':
      return { brokenGzip: true }
    case 'slowBody':
      return { bytesPerSecond: fault.bytesPerSecond }
    case 'staleRead':
      return { staleRead: true }
  }
}

function statusReply(
  status: number,
  body: string | undefined,
  headers: Readonly<Record<string, string>>,
): Reply {
  if (body === undefined) return gatewayError(status, 'The service is not able to answer.', headers)
  return { status, headers: { 'Content-Type': 'application/json', ...headers }, body }
}
