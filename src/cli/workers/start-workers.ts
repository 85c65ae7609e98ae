import cluster, { type Worker } from 'node:cluster'

import { connect, type Remote } from '../../app/remote-calls.ts'
import type { PreparedReload } from '../../app/reload.ts'
import type { WorkerWatch } from '../../app/watch-workers.ts'
import { inTime, systemClock } from '../../clock.ts'
import { type Config, packConfig, type PackedConfig, planReload } from '../../config/index.ts'
import { AdapterError } from '../../errors.ts'
import type { PrimaryCalls, WorkerCalls } from './run-worker.ts'

type Peer = Remote<WorkerCalls> & ReloadPeer

/** A worker as far as a reload concerns it. */
export interface ReloadPeer extends Pick<Remote<WorkerCalls>, 'call'> {
  readonly id: number
}

/** A worker that does not answer within this time makes the reload fail. */
const PREPARE_MS = 30_000
/** The decision is made: a worker that is late takes the configuration when it goes on. */
const COMMIT_MS = 10_000
/** A worker that does not report in this time counts with its last report. */
const METRICS_MS = 2_000

/**
 * Starts `count` processes like this one, which share one port, and replaces each that ends. The first one starts alone: it
 * creates the journal's tables, and a reason that prevents listening is reported once. Resolves when all accept requests. Error:
 * `ADP_CONFIGURATION` or `ADP_INTERNAL` when one ends before that.
 */
export async function startWorkers(first: Config, count: number, watch: WorkerWatch) {
  const alive = new Map<Peer, Worker>()
  const shared = createWorkersConfig(first)
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
    const answer = inTime(peer.call('metrics'), METRICS_MS, systemClock, unanswered(peer))
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
      const peer = { ...remote, id: worker.id }
      peer.answer({ ...answersTo(peer, resolve) })
      alive.set(peer, worker)
      watch.started(worker.id, worker.process.pid ?? 0)
      worker.once('exit', (status: number | null, signal: string | null) => {
        alive.delete(peer)
        shared.remove(peer)
        peer.end(notTaken(peer, 'ended'))
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
    return { url, stop, prepare: shared.prepare }
  } catch (cause) {
    await stop()
    throw cause
  }
}

/**
 * Creates the primary's part of a reload: every worker prepares, then every worker commits, or none does. A worker that starts
 * meanwhile gets its configuration when the reload is over, and so the one that all others have.
 */
export function createWorkersConfig(first: Config, prepareMs = PREPARE_MS) {
  const configured = new Set<ReloadPeer>()
  const ended = new WeakSet<ReloadPeer>()
  let current = first
  let reload = 0
  let reloading: PromiseWithResolvers<void> | undefined
  const endReload = (): void => {
    reloading?.resolve()
    reloading = undefined
  }
  const prepare = async (next: Config): Promise<PreparedReload> => {
    reloading = Promise.withResolvers()
    const id = ++reload
    try {
      const { config, changes } = planReload(current, next)
      const packed = packConfig(config)
      await callAll(configured, prepareMs, (peer) => peer.call('prepare', id, packed))
      return {
        changes,
        commit: async () => {
          current = config
          const committed = callAll(configured, COMMIT_MS, (peer) => peer.call('commit', id))
          endReload()
          await committed.catch(() => undefined)
        },
      }
    } catch (cause) {
      endReload()
      throw cause
    }
  }
  return {
    /** The configuration for a worker that starts, once no reload is under way. */
    configFor: async (worker: ReloadPeer): Promise<PackedConfig> => {
      while (reloading !== undefined) await reloading.promise
      if (!ended.has(worker)) configured.add(worker)
      return packConfig(current)
    },
    /** The worker has ended. */
    remove: (worker: ReloadPeer): void => {
      ended.add(worker)
      configured.delete(worker)
    },
    prepare,
  }
}

/** Calls all workers, and rejects with the first refusal once each has answered, ended, or let the time pass. */
async function callAll(
  peers: Iterable<ReloadPeer>,
  waitMs: number,
  call: (peer: ReloadPeer) => Promise<void>,
): Promise<void> {
  const answers = Array.from(peers, (peer) => inTime(call(peer), waitMs, systemClock, unanswered(peer)))
  await Promise.allSettled(answers)
  await Promise.all(answers)
}

function notTaken({ id }: ReloadPeer, what: string): AdapterError {
  const message = `Worker ${id} ${what}, so no worker took the configuration. Reload again.`
  return new AdapterError('ADP_INTERNAL', message)
}

const unanswered = (peer: ReloadPeer): AdapterError => notTaken(peer, 'did not answer in time')

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
