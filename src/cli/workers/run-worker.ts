import cluster from 'node:cluster'

import type { App, AppOverrides } from '../../app.ts'
import type { PreparedReload } from '../../app/create-reload.ts'
import type { MetricsText } from '../../app/watch-workers.ts'
import { type Config, unpackConfig } from '../../config/index.ts'
import { AdapterError } from '../../errors.ts'
import { type FromPrimary, type FromWorker, isFromPrimary, type PackedError } from './messages.ts'

/**
 * Runs one of several adapters on the same port, in a process that the primary forked and gives its configuration, until the primary
 * or a signal stops it. Resolves when it has ended; without its primary it ends at once, and the journal keeps its open records.
 */
export async function runWorker(create: (config: Config, overrides: AppOverrides) => App): Promise<void> {
  const asking: ((page: MetricsText) => void)[] = []
  const { promise: started, resolve: start } = Promise.withResolvers<App>()
  const { promise: stopped, resolve: stop } = Promise.withResolvers<undefined>()
  const overrides: AppOverrides = {
    ...(cluster.worker === undefined ? {} : { worker: cluster.worker.id }),
    renderMetrics: () =>
      new Promise((resolve) => {
        asking.push(resolve)
        tell({ kind: 'askPage' })
      }),
  }
  let app: App | undefined
  let prepared: { readonly reload: number; readonly commit: PreparedReload['commit'] } | undefined
  const prepare = async ({ reload, config }: Extract<FromPrimary, { kind: 'prepare' }>): Promise<void> => {
    try {
      const next = await app?.prepareReload(unpackConfig(config))
      if (next !== undefined) prepared = { reload, commit: next.commit }
      tell({ kind: 'prepared', reload })
    } catch (cause) {
      tell({ kind: 'prepared', reload, error: packError(cause) })
    }
  }
  const onMessage = (message: FromPrimary): void => {
    switch (message.kind) {
      case 'config':
        // At once: what follows may be a reload of it.
        app = create(unpackConfig(message.config), overrides)
        start(app)
        break
      case 'prepare':
        void prepare(message)
        break
      case 'commit':
        if (prepared?.reload === message.reload) void prepared.commit()
        tell({ kind: 'committed', reload: message.reload })
        break
      case 'stop':
        stop(undefined)
        break
      case 'page':
        for (const answer of asking.splice(0)) answer(message.page)
        break
      case 'askMetrics':
        void app?.metrics().then((metrics) => tell({ kind: 'metrics', metrics }))
    }
  }
  // A terminal and systemd signal the whole process group, and the primary sends a message as well: only the first one counts.
  process.on('SIGINT', () => stop(undefined)).on('SIGTERM', () => stop(undefined))
  // The primary reloads for all workers.
  process.on('SIGHUP', () => undefined)
  process.on('message', (message) => {
    if (isFromPrimary(message)) onMessage(message)
  })
  try {
    tell({ kind: 'askConfig' })
    const own = await Promise.race([started, stopped])
    if (own === undefined) return
    const { url } = await own.listen()
    tell({ kind: 'ready', url })
    await stopped
    await own.close()
  } finally {
    // The channel to the primary would keep the process alive.
    cluster.worker?.disconnect()
  }
}

function tell(message: FromWorker): void {
  // The primary may have exited.
  if (process.connected) process.send?.(message)
}

function packError(cause: unknown): PackedError {
  if (!(cause instanceof AdapterError))
    return { code: 'ADP_INTERNAL', message: 'A worker could not take the configuration.', details: [] }
  const { code, message, details } = cause
  return { code, message, details }
}
