import cluster, { type Worker } from 'node:cluster'

import type { ReloadTarget } from '../../app/create-reload.ts'
import type { WorkerEnd, WorkerWatch } from '../../app/watch-workers.ts'
import type { Config } from '../../config/index.ts'
import { AdapterError } from '../../errors.ts'
import { type FromPrimary, type FromWorker, isFromWorker } from './messages.ts'
import { createWorkersConfig } from './reload-workers.ts'

/** The workers of one adapter. */
interface Workers extends ReloadTarget {
  readonly url: string
  /** Lets them finish the requests under way, and resolves when all have ended. */
  stop(): Promise<void>
}

/** A worker that does not report in this time counts with its last report. */
const METRICS_MS = 2_000

/**
 * Starts `count` processes like this one, which share one port, and replaces each that ends. The first one starts alone: it
 * creates the journal's tables, and a reason that prevents listening is reported once. Resolves when all accept requests. Error:
 * `ADP_CONFIGURATION` or `ADP_INTERNAL` when one ends before that.
 */
export async function startWorkers(config: Config, count: number, watch: WorkerWatch): Promise<Workers> {
  const alive = new Set<Worker>()
  const delayAfter = createRestartDelay()
  const timers = new Set<NodeJS.Timeout>()
  let phase: 'starting' | 'running' | 'stopping' = 'starting'
  let onEmpty = (): void => undefined
  const metrics = createMetricsRound(alive, watch)
  const shared = createWorkersConfig(config)

  const end = (worker: Worker, bornMs: number, how: WorkerEnd): void => {
    alive.delete(worker)
    const restartMs = phase === 'running' ? delayAfter(performance.now() - bornMs) : undefined
    watch.ended(worker.id, how, restartMs)
    if (alive.size === 0) onEmpty()
    if (restartMs === undefined) return
    const timer = setTimeout(() => {
      timers.delete(timer)
      // The end of the replacement is handled here as well.
      start().catch(() => undefined)
    }, restartMs)
    timers.add(timer)
  }
  /** Resolves when a new worker accepts requests; rejects if it ends first. */
  const start = (): Promise<string> =>
    new Promise((resolve, reject) => {
      const bornMs = performance.now()
      const worker = cluster.fork()
      const peer = { id: worker.id, send: (message: FromPrimary) => tell(worker, message) }
      alive.add(worker)
      watch.started(worker.id, worker.process.pid ?? 0)
      worker.on('message', (message: unknown) => {
        if (!isFromWorker(message)) return
        if (message.kind === 'ready') resolve(message.url)
        else if (message.kind === 'metrics' || message.kind === 'askPage') metrics.onMessage(worker, message)
        else shared.onMessage(peer, message)
      })
      worker.once('exit', (status: number | null, signal: string | null) => {
        shared.onEnd(peer)
        end(worker, bornMs, { status, signal })
        reject(endedEarly(status))
      })
    })
  const stop = async (): Promise<void> => {
    phase = 'stopping'
    for (const timer of timers) clearTimeout(timer)
    if (alive.size === 0) return
    const empty = new Promise<void>((resolve) => (onEmpty = resolve))
    for (const worker of alive) tell(worker, { kind: 'stop' })
    await empty
  }
  try {
    // JSON would turn some numbers of the metrics into null.
    cluster.setupPrimary({ serialization: 'advanced' })
    const url = await start()
    await Promise.all(Array.from({ length: count - 1 }, start))
    phase = 'running'
    return { url, stop, prepare: shared.prepare }
  } catch (cause) {
    await stop()
    throw cause
  }
}

/** The worker itself has printed the reason. */
function endedEarly(status: number | null): AdapterError {
  return status === 2
    ? new AdapterError('ADP_CONFIGURATION', 'A worker could not start.')
    : new AdapterError('ADP_INTERNAL', 'A worker ended before it was ready.')
}

interface MetricsRound {
  onMessage(worker: Worker, message: Extract<FromWorker, { kind: 'metrics' | 'askPage' }>): void
}

/** Collects the metrics of all workers when one of them is asked for the adapter's, and sends it the sum. */
function createMetricsRound(alive: ReadonlySet<Worker>, watch: WorkerWatch): MetricsRound {
  const waiting = new Map<Worker, () => void>()
  let round: Promise<void> | undefined
  const ask = async (): Promise<void> => {
    const answers = [...alive].map((worker) => new Promise<void>((resolve) => waiting.set(worker, resolve)))
    for (const worker of alive) tell(worker, { kind: 'askMetrics' })
    const { promise: late, resolve: giveUp } = Promise.withResolvers<undefined>()
    const timer = setTimeout(() => giveUp(undefined), METRICS_MS)
    await Promise.race([Promise.all(answers), late])
    clearTimeout(timer)
    waiting.clear()
    round = undefined
  }
  return {
    onMessage: (worker, message) => {
      if (message.kind === 'metrics') {
        watch.shown(worker.id, message.metrics)
        waiting.get(worker)?.()
        return
      }
      void (round ??= ask()).then(() => watch.render()).then((page) => tell(worker, { kind: 'page', page }))
    },
  }
}

function tell(worker: Worker, message: FromPrimary): void {
  // A worker may end while it is sent to: its end is reported by itself, and an error without a receiver would end this process.
  if (worker.isConnected()) worker.send(message, () => undefined)
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
