import cluster, { type Worker } from 'node:cluster'

import { connect, type Remote } from '../../app/remote-calls.ts'
import type { ApplyConfig } from '../../app/reload.ts'
import type { WorkerWatch } from '../../app/watch-workers.ts'
import { inTime, systemClock } from '../../clock.ts'
import { type Config, packConfig, type PackedConfig, planReload } from '../../config/index.ts'
import { AdapterError } from '../../errors.ts'
import type { PrimaryCalls, WorkerCalls } from './run-worker.ts'

type Peer = Remote<WorkerCalls> & ReloadPeer

/** A worker as far as a reload concerns it. */
export interface ReloadPeer extends Pick<Remote<WorkerCalls>, 'call'> {
  readonly id: number
  /** Ends the worker, which another one replaces. */
  readonly kill: (signal: 'SIGTERM' | 'SIGKILL') => void
}

/** A worker that does not report in this time counts with its last report. */
const METRICS_MS = 2_000

/**
 * Starts `count` processes like this one, which share one port, and replaces each that ends. The first one starts alone: it
 * creates the journal's tables, and a reason that prevents listening is reported once. Resolves when all accept requests. Error:
 * `ADP_CONFIGURATION` or `ADP_INTERNAL` when one ends before that.
 */
export async function startWorkers(first: Config, count: number, watch: WorkerWatch) {
  const alive = new Map<Peer, Worker>()
  const shared = createWorkersConfig(first, first.tuning.workerReloadMs)
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
  /** Resolves when a new worker accepts requests; rejects if it ends first. */
  const start = (): Promise<string> =>
    new Promise((resolve, reject) => {
      const bornMs = performance.now()
      const worker = cluster.fork()
      const remote = connect<WorkerCalls>({
        postMessage: (message) => {
          // A worker may end while it is sent to: its end is reported by itself, and an error without a receiver would end this process.
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
      // The end of the replacement is handled where it was started.
      start().catch(() => undefined)
    }, restartMs)
    timers.add(timer)
  }
  /** Lets them finish the requests under way, and resolves when all have ended. */
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
    // JSON would turn some numbers of the metrics into null.
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
 * Creates the primary's part of a reload: workers take the configuration one after the other. The first that answers decides for all,
 * since all have the same settings and the same journal. A worker that does not follow is ended, and its replacement starts with the new
 * configuration.
 */
export function createWorkersConfig(first: Config, answerMs: number) {
  const configured = new Set<ReloadPeer>()
  let current = first
  const apply: ApplyConfig = async (next) => {
    const { config, changes } = planReload(current, next)
    const packed = packConfig(config)
    // Visits workers that start meanwhile, too: they may have the configuration before.
    for (const peer of configured) {
      try {
        await inTime(peer.call('reload', packed), answerMs, systemClock, noAnswer)
        current = config
      } catch (cause) {
        const isRefused = cause !== noAnswer
        if (isRefused && current !== config) throw cause
        // One that answers can still finish its requests.
        peer.kill(isRefused ? 'SIGTERM' : 'SIGKILL')
        configured.delete(peer)
      }
    }
    if (current !== config) throw noAnswer
    return changes
  }
  return {
    /** The configuration for a worker that starts. */
    configFor: (worker: ReloadPeer): PackedConfig => {
      configured.add(worker)
      return packConfig(current)
    },
    /** The worker has ended. */
    remove: (worker: ReloadPeer): void => void configured.delete(worker),
    apply,
  }
}

const noAnswer = new AdapterError(
  'ADP_INTERNAL',
  'No worker answered, so none took the configuration. Reload again.',
)

/** The worker itself has printed the reason. */
function endedEarly(status: number | null): AdapterError {
  return status === 2
    ? new AdapterError('ADP_CONFIGURATION', 'A worker could not start.')
    : new AdapterError('ADP_INTERNAL', 'A worker ended before it was ready.')
}

/** A worker that lived longer did not end for the reason that ended those before it. */
const LONG_LIFE_MS = 60_000
const FIRST_MS = 100
const LONGEST_MS = 10_000

/**
 * Creates the delays after which workers are replaced: 100 ms, doubled after each short life, up to 10 s. `livedMs` is the age of
 * the worker that ended.
 */
export function createRestartDelay(): (livedMs: number) => number {
  let young = 0
  return (livedMs) => {
    if (livedMs >= LONG_LIFE_MS) young = 0
    const delayMs = Math.min(FIRST_MS * 2 ** young, LONGEST_MS)
    young += 1
    return delayMs
  }
}
