import cluster from 'node:cluster'

import type { Command } from 'commander'

import { type App, type AppOverrides, createApp } from '../app.ts'
import { createWorkerWatch } from '../app/watch-workers.ts'
import { type Config, journalUrlOf, loadConfig, readEnvironment, warningsOf } from '../config/index.ts'
import { AdapterError } from '../errors.ts'
import { readPort, readWorkers } from './options.ts'
import { runUntilStopped } from './run-until-stopped.ts'
import { runWorker } from './workers/run-worker.ts'
import { startWorkers } from './workers/start-workers.ts'

const examples = `
Examples:
  markbridge serve --v3 http://127.0.0.1:4010
  markbridge serve --config markbridge.yaml --port 8080
  markbridge serve --v3 http://127.0.0.1:4010 --journal sqlite:/var/lib/markbridge/journal.db
  markbridge serve --config markbridge.yaml --workers 4

Without a file there is one partner for any subscription key, at stage v3. Flags win over the file.
MARKBRIDGE_LOG_LEVEL sets what is logged: debug, info (default), warn, error, silent.`

interface ServeOptions {
  readonly config?: string
  readonly v3?: string
  readonly host?: string
  readonly port?: number
  readonly journal?: string
  readonly workers: number
}

/** Adds `serve`: runs the adapter until it is told to stop. */
export function addServe(program: Command): void {
  program
    .command('serve')
    .description('run the adapter')
    .option('--config <file>', 'configuration file (YAML)')
    .option('--v3 <url>', 'base address of the V3 service')
    .option('--host <host>', 'address to listen on (default 127.0.0.1)')
    .option('--port <n>', 'port to listen on (default 8080)', readPort)
    .option('--journal <url>', 'sqlite:<file> (default sqlite:./data/journal.db), postgres://…, or none')
    .option('--workers <n>', 'processes that share the port; they need a journal', readWorkers, 1)
    .addHelpText('after', examples)
    .action(async ({ config: path, workers, ...flags }: ServeOptions) => {
      const config = await loadConfig(path, flags)
      if (cluster.isPrimary) {
        if (workers > 1) checkJournal(config, workers)
        for (const warning of warningsOf(config, workers)) console.error(`markbridge: warning: ${warning}`)
      }
      const logLevel = readEnvironment().logLevel ?? 'info'
      const create = (overrides: AppOverrides = {}): App => createApp(config, { logLevel, ...overrides })
      if (workers === 1) {
        await serveUntilStopped(async () => {
          const app = create()
          const { url } = await app.listen()
          return { url, stop: () => app.close() }
        })
      } else if (cluster.isWorker) await runWorker(create)
      else await serveUntilStopped(() => startWorkers(workers, createWorkerWatch(logLevel)))
    })
}

/** Starts the adapter, says when it is ready, and stops it when it is told to. */
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
    `--workers ${workers} needs a journal: with none each worker would know of its own batches alone, and a batch that comes ` +
      'again would be posted twice. Name one with --journal or journal.url, or run one worker.',
  )
}
