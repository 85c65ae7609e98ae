import cluster from 'node:cluster'

import type { App, AppOverrides } from '../../app.ts'
import { connect } from '../../app/remote-calls.ts'
import type { MetricsSnapshot, MetricsText } from '../../app/watch-workers.ts'
import { type Config, type ConfigChanges, type PackedConfig, unpackConfig } from '../../config/index.ts'

/** What a worker answers the primary. */
export interface WorkerCalls {
  /** Takes this configuration, or rejects with why and changes nothing. */
  readonly reload: (config: PackedConfig) => Promise<ConfigChanges>
  readonly metrics: () => Promise<MetricsSnapshot>
  /** Finishes the requests under way, then exits. */
  readonly stop: () => void
}

/** What the primary answers a worker. */
export interface PrimaryCalls {
  /** The configuration to start with. */
  readonly config: () => PackedConfig
  /** The worker accepts requests. */
  readonly ready: (url: string) => void
  /** The metrics of all workers as one page. */
  readonly renderMetrics: () => Promise<MetricsText>
}

/**
 * Runs one of several adapters on the same port, in a process that the primary forked and gives its configuration, until the primary
 * or a signal stops it. Resolves when it has ended; without its primary it ends at once, and the journal keeps its open records.
 */
export async function runWorker(create: (config: Config, overrides: AppOverrides) => App): Promise<void> {
  const primary = connect<PrimaryCalls>({
    postMessage: (message) => {
      // The primary may have exited.
      if (process.connected) process.send?.(message)
    },
    on: (event, listener) => process.on(event, listener),
  })
  const { promise: started, resolve: start } = Promise.withResolvers<App>()
  const { promise: stopped, resolve: stop } = Promise.withResolvers<undefined>()
  const calls: WorkerCalls = {
    reload: async (config) => (await started).reload(() => unpackConfig(config)),
    metrics: async () => (await started).metrics(),
    stop: () => stop(undefined),
  }
  primary.answer({ ...calls })
  // A terminal and systemd signal the whole process group, and the primary calls as well: only the first one counts.
  process.on('SIGINT', calls.stop).on('SIGTERM', calls.stop)
  // The primary reloads for all workers.
  process.on('SIGHUP', () => undefined)
  try {
    const config = await Promise.race([primary.call('config'), stopped])
    if (config === undefined) return
    const app = create(unpackConfig(config), {
      ...(cluster.worker === undefined ? {} : { worker: cluster.worker.id }),
      renderMetrics: () => primary.call('renderMetrics'),
    })
    start(app)
    const { url } = await app.listen()
    void primary.call('ready', url)
    await stopped
    await app.close()
  } finally {
    // The channel to the primary would keep the process alive.
    cluster.worker?.disconnect()
  }
}
