import cluster from 'node:cluster'

import type { App, AppOverrides } from '../../app.ts'
import type { MetricsText } from '../../app/watch-workers.ts'
import { type FromWorker, isFromPrimary } from './messages.ts'

/**
 * Runs one of several adapters on the same port, in a process that the primary forked, until the primary or a signal stops it.
 * Resolves when it has ended; without its primary it ends at once, and the journal keeps its open records.
 */
export async function runWorker(create: (overrides: AppOverrides) => App): Promise<void> {
  const asking: ((page: MetricsText) => void)[] = []
  const app = create({
    ...(cluster.worker === undefined ? {} : { worker: cluster.worker.id }),
    renderMetrics: () =>
      new Promise((resolve) => {
        asking.push(resolve)
        tell({ kind: 'askPage' })
      }),
  })
  const stopped = new Promise<void>((resolve) => {
    // A terminal and systemd signal the whole process group, and the primary sends a message as well: only the first one counts.
    process.on('SIGINT', () => resolve()).on('SIGTERM', () => resolve())
    process.on('message', (message) => {
      if (!isFromPrimary(message)) return
      if (message.kind === 'stop') resolve()
      else if (message.kind === 'page') for (const answer of asking.splice(0)) answer(message.page)
      else void app.metrics().then((metrics) => tell({ kind: 'metrics', metrics }))
    })
  })
  try {
    const { url } = await app.listen()
    tell({ kind: 'ready', url })
    await stopped
    await app.close()
  } finally {
    // The channel to the primary would keep the process alive.
    cluster.worker?.disconnect()
  }
}

function tell(message: FromWorker): void {
  // The primary may have exited.
  if (process.connected) process.send?.(message)
}
