import type { MetricsSnapshot, MetricsText } from '../../app/watch-workers.ts'

/** What a worker tells the primary. */
export type FromWorker =
  /** It takes requests. */
  | { readonly kind: 'ready'; readonly url: string }
  /** Its own metrics, as the primary asked for them. */
  | { readonly kind: 'metrics'; readonly metrics: MetricsSnapshot }
  /** Somebody asked it for the metrics of the adapter. */
  | { readonly kind: 'askPage' }

/** What the primary tells a worker. */
export type FromPrimary =
  /** Finish what is under way, then end. */
  | { readonly kind: 'stop' }
  | { readonly kind: 'askMetrics' }
  /** The metrics of all workers, for everybody who asked this one. */
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
