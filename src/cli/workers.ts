import cluster, { type Worker } from 'node:cluster'

import type { App, AppOverrides } from '../app.ts'
import type { ApplyConfig } from '../app/reload.ts'
import { connect, type Remote } from '../app/remote-calls.ts'
import type { MetricsSnapshot, MetricsText, WorkerWatch } from '../app/watch-workers.ts'
import { inTime, systemClock } from '../clock.ts'
import {
  type Config,
  type ConfigChanges,
  packConfig,
  type PackedConfig,
  planReload,
  unpackConfig,
} from '../config/index.ts'
import { AdapterError } from '../errors.ts'
import { keepServing } from './last-handlers.ts'

type Peer = Remote<WorkerCalls> & ReloadPeer

export interface ReloadPeer extends Pick<Remote<WorkerCalls>, 'call'> {
  readonly id: number
  /** Sends a signal that ends the worker. A replacement is started. */
  readonly kill: (signal: 'SIGTERM' | 'SIGKILL') => void
}

/**
 * The time in milliseconds within which a worker must answer a reload. A worker that exceeds it is killed. A worker with a slow journal
 * answers earlier, with a failure.
 */
const RELOAD_MS = 30_000
/** The time in milliseconds to wait for the metrics of a worker. After this time its last known metrics count. */
const METRICS_MS = 2_000

/**
 * Starts `count` worker processes that share one port, and replaces each worker that ends. The first worker starts alone, so that only one
 * worker creates the tables of the journal or reports a fault of the configuration. Resolves when all workers accept requests. Rejects with
 * `ADP_CONFIGURATION` or `ADP_INTERNAL` if a worker ends before it accepts requests.
 */
export async function startWorkers(first: Config, count: number, watch: WorkerWatch) {
  const alive = new Map<Peer, Worker>()
  const shared = createWorkersConfig(first, RELOAD_MS)
  const delayAfter = createRestartDelay()
  const timers = new Set<NodeJS.Timeout>()
  let phase: 'starting' | 'running' | 'stopping' = 'starting'
  let asked: Promise<unknown> | undefined

  const answersTo = (peer: Peer, ready: (url: string) => void): PrimaryCalls => ({
    config: () => shared.configFor(peer),
    ready,
    renderMetrics: async () => {
      asked ??= Promise.all([...alive.keys()].map(askMetrics)).finally(() => (asked = undefined))
      await asked
      return watch.render()
    },
  })
  const askMetrics = async (peer: Peer): Promise<void> => {
    const answer = inTime(peer.call('metrics'), METRICS_MS, systemClock, noAnswer)
    const metrics = await answer.catch(() => undefined)
    if (metrics !== undefined) watch.shown(peer.id, metrics)
  }
  /** Starts a worker. Resolves when the worker accepts requests, and rejects if the worker ends first. */
  const start = (): Promise<string> =>
    new Promise((resolve, reject) => {
      const bornMs = performance.now()
      const worker = cluster.fork()
      const remote = connect<WorkerCalls>({
        postMessage: (message) => {
          // If a worker ends while a message is sent, its `exit` handler acts. Without the callback, the error would end this process.
          if (worker.isConnected()) worker.send(message, () => undefined)
        },
        on: (event, listener) => worker.on(event, listener),
      })
      const kill: Peer['kill'] = (signal) => void worker.process.kill(signal)
      const peer = { ...remote, id: worker.id, kill }
      peer.answer({ ...answersTo(peer, resolve) })
      alive.set(peer, worker)
      watch.started(worker.id, worker.process.pid ?? 0)
      worker.once('exit', (status: number | null, signal: string | null) => {
        alive.delete(peer)
        shared.remove(peer)
        peer.end(noAnswer)
        const restartMs = phase === 'running' ? delayAfter(performance.now() - bornMs) : undefined
        watch.ended({ worker: worker.id, status, signal, restartMs: restartMs ?? null })
        if (restartMs !== undefined) startIn(restartMs)
        reject(endedEarly(status))
      })
    })
  const startIn = (restartMs: number): void => {
    const timer = setTimeout(() => {
      timers.delete(timer)
      // If the replacement ends early, its `exit` handler starts another one, so the rejection is ignored.
      start().catch(() => undefined)
    }, restartMs)
    timers.add(timer)
  }
  /** Lets the workers finish their requests. Resolves when all workers have ended. */
  const stop = async (): Promise<void> => {
    phase = 'stopping'
    for (const timer of timers) clearTimeout(timer)
    await Promise.all(
      [...alive].map(async ([peer, worker]) => {
        const ended = new Promise((resolve) => worker.once('exit', resolve))
        peer.call('stop').catch(() => undefined)
        await ended
      }),
    )
  }
  try {
    // The default serialization (JSON) turns infinite numbers in the metrics into null.
    cluster.setupPrimary({ serialization: 'advanced' })
    const url = await start()
    await Promise.all(Array.from({ length: count - 1 }, start))
    phase = 'running'
    return { url, stop, apply: shared.apply }
  } catch (cause) {
    await stop()
    throw cause
  }
}

/**
 * Creates the part of a reload that runs in the primary process. It passes the configuration to one worker after another. The first worker
 * that answers decides for all workers, because they share settings and journal. A worker that does not apply an accepted configuration is
 * ended, and its replacement starts with the new configuration.
 */
export function createWorkersConfig(first: Config, answerMs: number) {
  const configured = new Set<ReloadPeer>()
  let current = first
  const apply: ApplyConfig = async (next) => {
    const { config, changes } = planReload(current, next)
    const packed = packConfig(config)
    // The loop also reaches workers that start during the reload, because they may have been given the old configuration.
    for (const peer of configured) {
      try {
        await inTime(peer.call('reload', packed), answerMs, systemClock, noAnswer)
        current = config
      } catch (cause) {
        const isRefused = cause !== noAnswer
        if (isRefused && current !== config) throw cause
        // A worker that answers gets SIGTERM, so that it finishes its requests. A worker that does not answer is killed.
        peer.kill(isRefused ? 'SIGTERM' : 'SIGKILL')
        configured.delete(peer)
      }
    }
    if (current !== config) throw noAnswer
    return changes
  }
  return {
    configFor: (worker: ReloadPeer): PackedConfig => {
      configured.add(worker)
      return packConfig(current)
    },
    remove: (worker: ReloadPeer): void => void configured.delete(worker),
    apply,
  }
}

const noAnswer = new AdapterError(
  'ADP_INTERNAL',
  'No worker answered. The configuration was not changed. Reload again.',
)

/** Returns the error for a worker that ended during the start. The worker itself has printed the reason. */
function endedEarly(status: number | null): AdapterError {
  return status === 2
    ? new AdapterError(
        'ADP_CONFIGURATION',
        'A worker could not start. The adapter was not started. Correct the fault that the worker has printed.',
      )
    : new AdapterError(
        'ADP_INTERNAL',
        'A worker ended before it was ready. The adapter was not started. Find the cause in the log of the worker.',
      )
}

/** The lifetime in milliseconds from which the end of a worker no longer counts as a repeated failure. */
const LONG_LIFE_MS = 60_000
const FIRST_MS = 100
const LONGEST_MS = 10_000

/** Creates a function that returns the delay before a worker is replaced: 100 ms, doubled after each short life (`livedMs`), up to 10 s. */
export function createRestartDelay(): (livedMs: number) => number {
  let young = 0
  return (livedMs) => {
    if (livedMs >= LONG_LIFE_MS) young = 0
    const delayMs = Math.min(FIRST_MS * 2 ** young, LONGEST_MS)
    young += 1
    return delayMs
  }
}

interface WorkerCalls {
  /** Applies a configuration. If the call rejects, the worker has changed nothing. */
  readonly reload: (config: PackedConfig) => Promise<ConfigChanges>
  readonly metrics: () => Promise<MetricsSnapshot>
  readonly stop: () => void
}

interface PrimaryCalls {
  readonly config: () => PackedConfig
  /** Reports that the worker accepts requests at `url`. */
  readonly ready: (url: string) => void
  readonly renderMetrics: () => Promise<MetricsText>
}

/**
 * Runs one of several adapters that share a port, in a forked process, until the primary process or a signal stops it. Resolves when the
 * adapter has ended. If the primary process ends, this process ends at once, and its open records stay in the journal.
 */
export async function runWorker(create: (config: Config, overrides: AppOverrides) => App): Promise<void> {
  const primary = connect<PrimaryCalls>({
    postMessage: (message) => {
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
  // A terminal and systemd signal the whole process group, and the primary calls `stop` as well. Only the first call has an effect.
  process.on('SIGINT', calls.stop).on('SIGTERM', calls.stop)
  // The primary reloads the configuration for all workers, so a worker ignores SIGHUP.
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
    keepServing(app.onUnhandled)
    // If the primary has exited, the channel is closed and this process ends, so the rejection is ignored.
    primary.call('ready', url).catch(() => undefined)
    await stopped
    await app.close()
  } finally {
    // The channel to the primary would keep this process alive.
    cluster.worker?.disconnect()
  }
}
