import cluster from 'node:cluster'

import type { AppOverrides } from '../app.ts'
import { createWorkerWatch } from '../app/watch-workers.ts'
import { type Config, journalUrlOf, loadConfig, readEnvironment, warningsOf } from '../config/index.ts'
import { AdapterError } from '../errors.ts'
import { runUntilStopped } from './run-until-stopped.ts'
import { runWorker } from './workers/run-worker.ts'
import { startWorkers } from './workers/start-workers.ts'

/** The flags of `serve`; they override the file. */
export interface ServeOptions {
  readonly config?: string
  readonly v3?: string
  readonly host?: string
  readonly port?: number
  readonly journal?: string
  readonly workers: number
}

/** Runs the adapter, in this process or in workers, until a signal stops it. */
export async function runServe({ config: path, workers, ...flags }: ServeOptions): Promise<void> {
  const config = await loadConfig(path, flags)
  if (cluster.isPrimary) {
    if (workers > 1) checkJournal(config, workers)
    for (const warning of warningsOf(config, workers)) console.error(`markbridge: warning: ${warning}`)
  }
  const logLevel = readEnvironment().logLevel ?? 'info'
  if (workers > 1 && cluster.isPrimary) {
    await serveUntilStopped(() => startWorkers(workers, createWorkerWatch(logLevel)))
    return
  }
  // The process that starts workers serves nothing itself, so it does not load the adapter.
  const { createApp } = await import('../app.ts')
  const create = (overrides: AppOverrides = {}) => createApp(config, { logLevel, ...overrides })
  if (cluster.isWorker) await runWorker(create)
  else
    await serveUntilStopped(async () => {
      const app = create()
      const { url } = await app.listen()
      return { url, stop: () => app.close() }
    })
}

/** Starts the adapter, prints its ready line, and stops it on a signal. */
function serveUntilStopped(
  start: () => Promise<{ readonly url: string; stop(): Promise<void> }>,
): Promise<void> {
  return runUntilStopped(async (onClose) => {
    const adapter = await start()
    onClose(() => adapter.stop())
    console.log(`adapter ready ${adapter.url}`)
  })
}

function checkJournal(config: Config, workers: number): void {
  if (journalUrlOf(config.journal) !== 'none') return
  throw new AdapterError(
    'ADP_CONFIGURATION',
    `--workers ${workers} needs a journal: without one each worker knows its own batches only, and a repeated batch would be posted ` +
      'twice. Set --journal or journal.url, or run one worker.',
  )
}
