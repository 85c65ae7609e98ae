import type { MetricsSnapshot, MetricsText } from '../../app/watch-workers.ts'
import type { PackedConfig } from '../../config/index.ts'
import type { AdapterError } from '../../errors.ts'

/** An error as another process can throw it again. */
export type PackedError = Pick<AdapterError, 'code' | 'message' | 'details'>

/** Messages from a worker to the primary. */
export type FromWorker =
  /** The worker starts and needs its configuration. */
  | { readonly kind: 'askConfig' }
  /** The worker accepts requests. */
  | { readonly kind: 'ready'; readonly url: string }
  /** The worker can take the configuration of this reload; with an error it cannot. */
  | { readonly kind: 'prepared'; readonly reload: number; readonly error?: PackedError }
  /** The worker has taken the configuration of this reload. */
  | { readonly kind: 'committed'; readonly reload: number }
  /** The worker's own metrics, as requested by the primary. */
  | { readonly kind: 'metrics'; readonly metrics: MetricsSnapshot }
  /** A client has requested the metrics of the adapter. */
  | { readonly kind: 'askPage' }

/** Messages from the primary to a worker. */
export type FromPrimary =
  | { readonly kind: 'config'; readonly config: PackedConfig }
  /** Check this configuration and build what it needs; change nothing yet. */
  | { readonly kind: 'prepare'; readonly reload: number; readonly config: PackedConfig }
  | { readonly kind: 'commit'; readonly reload: number }
  /** Finish the requests under way, then exit. */
  | { readonly kind: 'stop' }
  | { readonly kind: 'askMetrics' }
  /** The metrics of all workers, for the clients that requested them from this one. */
  | { readonly kind: 'page'; readonly page: MetricsText }

/** True for a message of this program; Node and its debugger send others through the same channel. */
export function isFromWorker(message: unknown): message is FromWorker {
  return hasKind(message, ['askConfig', 'ready', 'prepared', 'committed', 'metrics', 'askPage'])
}

/** As `isFromWorker`, the other way. */
export function isFromPrimary(message: unknown): message is FromPrimary {
  return hasKind(message, ['config', 'prepare', 'commit', 'stop', 'askMetrics', 'page'])
}

function hasKind(message: unknown, kinds: readonly string[]): boolean {
  if (typeof message !== 'object' || message === null || !('kind' in message)) return false
  return typeof message.kind === 'string' && kinds.includes(message.kind)
}
