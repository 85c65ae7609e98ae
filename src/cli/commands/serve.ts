import cluster from 'node:cluster'

import { type Command, InvalidArgumentError } from 'commander'

import { createReload, type Reload } from '../../app/reload.ts'
import { createWorkerWatch } from '../../app/watch-workers.ts'
import { systemClock } from '../../clock.ts'
import { type Config, journalUrlOf, loadConfig, readEnvironment, warningsOf } from '../../config/index.ts'
import { AdapterError } from '../../errors.ts'
import { runUntilStopped } from '../signals.ts'
import { createFileWatch } from '../watch-files.ts'
import { runWorker } from '../workers/run-worker.ts'
import { startWorkers } from '../workers/start-workers.ts'
import { readCount, readPort } from '../options.ts'

const examples = `
Examples:
  markbridge serve --v3 http://127.0.0.1:4010
  markbridge serve --config markbridge.yaml --port 8080
  markbridge serve --v3 http://127.0.0.1:4010 --journal sqlite:/var/lib/markbridge/journal.db
  markbridge serve --config markbridge.yaml --workers 4
  markbridge serve --config markbridge.yaml --watch

Without a file there is one partner, which matches every subscription key, at stage v3. Flags override the file.
SIGHUP reloads the file: partners and limits change while requests run, and a faulty file changes nothing.
MARKBRIDGE_LOG_LEVEL sets the lowest level that is logged: debug, info (default), warn, error, silent.`

/** Adds `serve`: runs the adapter until a signal stops it. */
export function addServe(command: Command): void {
  command
    .option('--config <file>', 'configuration file (YAML)')
    .option('--v3 <url>', 'base address of the V3 service')
    .option('--v2 <url>', 'base address of the V2 service, for stages at which V2 serves')
    .option('--host <host>', 'address to listen on (default 127.0.0.1)')
    .option('--port <n>', 'port to listen on (default 8080)', readPort)
    .option('--journal <url>', 'sqlite:<file> (default sqlite:./data/journal.db), postgres://…, or none')
    .option(
      '--workers <n>',
      'number of processes that share the port; more than 1 needs a journal',
      readWorkers,
      1,
    )
    .option('--watch', 'reload when the configuration, or a file of a secret in it, changes', false)
    .addHelpText('after', examples)
    .action(runServe)
}

function readWorkers(text: string): number {
  const count = readCount(text)
  if (count < 1 || count > 64) throw new InvalidArgumentError('Workers are a number from 1 to 64.')
  return count
}

/** The flags of `serve`; they override the file. */
interface ServeOptions {
  readonly config?: string
  readonly v3?: string
  readonly v2?: string
  readonly host?: string
  readonly port?: number
  readonly journal?: string
  readonly workers: number
  readonly watch: boolean
}

/** Runs the adapter, in this process or in workers, until a signal stops it. */
async function runServe({ config: path, workers, watch, ...flags }: ServeOptions): Promise<void> {
  const logLevel = readEnvironment().logLevel ?? 'info'
  if (cluster.isWorker) {
    const { createApp } = await import('../../app.ts')
    await runWorker((config, overrides) => createApp(config, { logLevel, ...overrides }))
    return
  }
  if (watch && path === undefined)
    throw new AdapterError('ADP_USAGE', '--watch needs a file to watch: name it with --config.')
  const files = createFileWatch()
  const warn = createWarning(workers)
  const load = async (): Promise<Config> => {
    const loaded = await loadConfig(path, flags, { onRead: files.onRead })
    warn(loaded)
    return loaded
  }
  const { promise: ready, resolve: begin } = Promise.withResolvers<Adapter>()
  // The log and the metrics show its result.
  const reload = (): void => void ready.then((adapter) => adapter.reload(load)).catch(() => undefined)
  // From before the start, which a signal would end otherwise. Without a file, a terminal that is closed ends the program.
  if (path !== undefined) process.on('SIGHUP', reload)
  const config = await load()
  if (workers > 1) checkJournal(config, workers)
  const start =
    workers > 1 ? () => startInWorkers(config, workers, logLevel) : () => startHere(config, logLevel)
  await runUntilStopped(async (onClose) => {
    const adapter = await start()
    onClose(() => adapter.stop())
    begin(adapter)
    if (watch) {
      const end = files.start(reload)
      onClose(() => {
        end()
        return Promise.resolve()
      })
    }
    console.log(`adapter ready ${adapter.url}`)
  })
}

/** A running adapter, in one process or in several. */
interface Adapter {
  readonly url: string
  readonly reload: Reload
  readonly stop: () => Promise<void>
}

async function startHere(config: Config, logLevel: string): Promise<Adapter> {
  const { createApp } = await import('../../app.ts')
  const app = createApp(config, { logLevel })
  const { url } = await app.listen()
  return { url, reload: app.reload, stop: () => app.close() }
}

/** The process that starts workers serves nothing itself, so it does not load the adapter. */
async function startInWorkers(config: Config, count: number, logLevel: string): Promise<Adapter> {
  const watch = createWorkerWatch(logLevel)
  const workers = await startWorkers(config, count, watch)
  return { url: workers.url, stop: () => workers.stop(), reload: createReload(workers, watch.reloads) }
}

/** Prints warnings, each once. */
function createWarning(workers: number): (config: Config) => void {
  const printed = new Set<string>()
  return (config) => {
    const today = new Date(systemClock.wallMs()).toISOString().slice(0, 10)
    for (const warning of warningsOf(config, workers, today).filter((text) => !printed.has(text))) {
      printed.add(warning)
      console.error(`markbridge: warning: ${warning}`)
    }
  }
}

function checkJournal(config: Config, workers: number): void {
  if (journalUrlOf(config.journal) !== 'none') return
  throw new AdapterError(
    'ADP_CONFIGURATION',
    `--workers ${workers} needs a journal: without one each worker knows its own batches only, and a repeated batch would be posted ` +
      'twice. Set --journal or journal.url, or run one worker.',
  )
}
