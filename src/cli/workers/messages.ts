import type { MetricsSnapshot, MetricsText } from '../../app/watch-workers.ts'

/** Messages from a worker to the primary. */
export type FromWorker =
  /** The worker accepts requests. */
  | { readonly kind: 'ready'; readonly url: string }
  /** The worker's own metrics, as requested by the primary. */
  | { readonly kind: 'metrics'; readonly metrics: MetricsSnapshot }
  /** A client has requested the metrics of the adapter. */
  | { readonly kind: 'askPage' }

/** Messages from the primary to a worker. */
export type FromPrimary =
  /** Finish the requests under way, then exit. */
  | { readonly kind: 'stop' }
  | { readonly kind: 'askMetrics' }
  /** The metrics of all workers, for the clients that requested them from this one. */
  | { readonly kind: 'page'; readonly page: MetricsText }

/** True for a message of this program; Node and its debugger send others through the same channel. */
export function isFromWorker(message: unknown): message is FromWorker {
  return hasKind(message, ['ready', 'metrics', 'askPage'])
}

/** As `isFromWorker`, the other way. */
export function isFromPrimary(message: unknown): message is FromPrimary {
  return hasKind(message, ['stop', 'askMetrics', 'page'])
}

function hasKind(message: unknown, kinds: readonly string[]): boolean {
  if (typeof message !== 'object' || message === null || !('kind' in message)) return false
  return typeof message.kind === 'string' && kinds.includes(message.kind)
}
