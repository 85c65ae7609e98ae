import cluster from 'node:cluster'

import { type Command, Option } from 'commander'

import type { App, AppOverrides } from '../../app.ts'
import { toInternalError } from '../../app/background/calls.ts'
import { createReload, type Reload } from '../../app/reload.ts'
import { createWorkerWatch } from '../../app/watch-workers.ts'
import { systemClock } from '../../clock.ts'
import { type Config, journalUrlOf, loadConfig, readEnvironment, warningsOf } from '../../config/index.ts'
import { AdapterError } from '../../errors.ts'
import { createEvents } from '../../observability/events.ts'
import { createLogger, type Logger, openTextLines } from '../../observability/logger.ts'
import { configOption, NO_CONFIG, readPort, readWhole } from '../options.ts'
import { keepServing } from '../last-handlers.ts'
import { runUntilStopped } from '../signals.ts'
import { formatHints } from '../text.ts'
import { openConfiguredTracing } from '../tracing.ts'
import { createFileWatch } from '../watch-files.ts'
import { runWorker, startWorkers } from '../workers.ts'

const examples = `
Examples:
  markbridge serve --v3 http://127.0.0.1:4010
  markbridge serve --config markbridge.yaml --port 8080
  markbridge serve --v3 http://127.0.0.1:4010 \\
    --journal sqlite:/var/lib/markbridge/journal.db
  markbridge serve --workers 4
  markbridge serve --watch
  markbridge serve --console 8081

Without a file there is one partner, which matches every subscription key, at
stage v3. Flags override the file. SIGHUP reloads the file: partners and limits
change while requests run, and a faulty file changes nothing.
MARKBRIDGE_LOG_LEVEL sets the lowest level that is logged: debug, info
(default), warn, error, silent. OTEL_EXPORTER_OTLP_ENDPOINT sends traces to an
OpenTelemetry collector (docs/traces.md).`

export function addServe(command: Command, _exitWith: unknown, overrides: AppOverrides): void {
  command
    .addOption(configOption('configuration file (YAML)'))
    .option('--v3 <url>', 'base address of the V3 service')
    .option('--v2 <url>', 'base address of the V2 service, for stages at which V2 serves')
    .option('--host <host>', 'address to listen on (default 127.0.0.1)')
    .option('--port <n>', 'port to listen on (default 8080)', readPort)
    .option('--journal <url>', 'sqlite:<file> (default sqlite:./data/journal.db), postgres://…, or none')
    .option(
      '--workers <n>',
      'number of processes that share the port; more than 1 needs a journal',
      readWhole(1, 64, 'The number of workers must be from 1 to 64.'),
      1,
    )
    .addOption(
      new Option('--log-format <format>', 'lines of the log on standard error: json, or text for a terminal')
        .choices(['json', 'text'])
        .default('json'),
    )
    .option('--console <port>', 'port of the web console for operators (default: none)', readPort)
    .option('--watch', 'reload when the configuration or the file of a secret changes', false)
    .addHelpText('after', examples)
    .action((options: ServeOptions) => runServe(options, overrides))
}

interface ServeOptions {
  readonly config?: string
  readonly v3?: string
  readonly v2?: string
  readonly host?: string
  readonly port?: number
  readonly journal?: string
  readonly console?: number
  readonly workers: number
  readonly logFormat: 'json' | 'text'
  readonly watch: boolean
}

async function runServe(
  { config: path, workers, watch, logFormat, ...flags }: ServeOptions,
  overrides: AppOverrides,
): Promise<void> {
  const lines = logFormat === 'text' ? await openTextLines() : undefined
  const openLogger = (worker?: number): Logger => {
    const opened = createLogger(readEnvironment().logLevel ?? 'info', lines, worker)
    logWarnings(opened)
    return opened
  }
  if (cluster.isWorker) {
    const { createApp } = await import('../../app.ts')
    const tracing = await openConfiguredTracing()
    await runWorker((config, own) =>
      createApp(config, { logger: openLogger(own.worker), tracing, ...overrides, ...own }),
    )
    return
  }
  if (path === undefined && (watch || flags.v3 === undefined))
    throw new AdapterError(
      'ADP_USAGE',
      watch
        ? `--watch needs a configuration file. The adapter was not started. ${NO_CONFIG}.`
        : `${NO_CONFIG}, or name V3 with --v3 <url>.`,
    )
  const files = createFileWatch()
  const logger = openLogger()
  const warn = createConfigWarnings(logger, workers, (text) => formatHints(text, { config: path }))
  let next: Config | undefined
  const load = async (): Promise<Config> => {
    const loaded = await loadConfig(path, flags, { onRead: files.onRead })
    warn(loaded)
    next = loaded
    return loaded
  }
  const { promise: ready, resolve: begin } = Promise.withResolvers<Adapter>()
  // A failed reload is not handled here, because the adapter reports it in its log and metrics.
  const reload = (): void =>
    void ready
      .then((adapter) => adapter.reload(load))
      .then(() => {
        current = next ?? current
        renewConsole?.()
      })
      .catch(() => undefined)
  // The handler is installed before the start, because SIGHUP would otherwise end the process. Without a configuration file, SIGHUP still
  // ends the program, as when its terminal closes.
  if (path !== undefined) process.on('SIGHUP', reload)
  const config = await load()
  let current = config
  let renewConsole: (() => void) | undefined
  if (workers > 1) checkJournal(config, workers)
  const start =
    workers > 1
      ? () => startInWorkers(config, workers, logger)
      : () => startHere(config, { ...overrides, logger })
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
    if (config.console === undefined) return
    const { openConsole } = await import('../console/open-console.ts')
    const opened = await openConsole(config.console, () => current, logger, adapter.consoleData)
    onClose(opened.close)
    renewConsole = opened.renewCertificate
    console.log(`console ready ${opened.url}`)
    if (opened.link !== undefined) console.log(`console link, for one use: ${opened.link}`)
  })
}

/** Logs the warnings of Node.js and of libraries. By default, Node.js prints them as plain text between the lines of the log. */
function logWarnings(logger: Logger): void {
  const { runtimeWarned } = createEvents(logger)
  process.removeAllListeners('warning')
  process.on('warning', (warning: NodeJS.ErrnoException) => {
    runtimeWarned({ warning: warning.name, code: warning.code })
  })
}

interface Adapter {
  readonly url: string
  readonly reload: Reload
  readonly stop: () => Promise<void>
  /** The data for the console, or `undefined` if there is no journal or if workers run the adapter. */
  readonly consoleData: ReturnType<App['consoleData']>
}

async function startHere(config: Config, overrides: AppOverrides): Promise<Adapter> {
  const { createApp } = await import('../../app.ts')
  const app = createApp(config, { tracing: await openConfiguredTracing(), ...overrides })
  const { url } = await app.listen()
  keepServing(app.onUnhandled)
  return { url, reload: app.reload, stop: () => app.close(), consoleData: app.consoleData() }
}

/** Starts the workers. This primary process does not load the adapter, because it serves no requests. */
async function startInWorkers(config: Config, count: number, logger: Logger): Promise<Adapter> {
  const watch = createWorkerWatch(logger)
  const workers = await startWorkers(config, count, watch)
  keepServing((cause) => createEvents(logger).internalError(toInternalError(cause)))
  const reload = createReload(workers.apply, watch.reloads)
  return { url: workers.url, stop: () => workers.stop(), reload, consoleData: undefined }
}

function checkJournal(config: Config, workers: number): void {
  if (journalUrlOf(config.journal) !== 'none') return
  throw new AdapterError(
    'ADP_CONFIGURATION',
    `--workers ${workers} needs a journal. Without a journal, each worker knows only its own batches, and a resent batch would be posted ` +
      'twice. The adapter was not started. Set --journal or journal.url, or run one worker.',
  )
}

/**
 * Creates a function that logs each warning of a configuration once. `format` completes the commands in a warning, so that they can be
 * pasted.
 */
function createConfigWarnings(
  logger: Logger,
  workers: number,
  format: (text: string) => string,
): (config: Config) => void {
  const { configWarned } = createEvents(logger)
  const logged = new Set<string>()
  return (config) => {
    const today = new Date(systemClock.wallMs()).toISOString().slice(0, 10)
    for (const text of warningsOf(config, workers, today).filter((warning) => !logged.has(warning))) {
      logged.add(text)
      configWarned({ warning: format(text) })
    }
  }
}
