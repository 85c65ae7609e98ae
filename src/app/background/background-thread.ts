import { constants } from 'node:os'

import type { Clock } from '../../clock.ts'
import { type Config, packConfig } from '../../config/index.ts'
import { AdapterError } from '../../errors.ts'
import { endThread, startThread, type Thread } from '../remote-calls.ts'
import type { MainCalls, ThreadCalls, ThreadStart } from './calls.ts'

interface ThreadOptions {
  readonly config: Config
  readonly start: Omit<ThreadStart, 'config' | 'aheadMs' | 'nice'>
  /** The nice value of the thread, on Linux. Default: 19, the lowest priority. */
  readonly nice: number | undefined
  readonly nowMs: () => number
  readonly calls: MainCalls
  /** Called with the error that ended a thread or prevented its start. */
  readonly onFailure: (cause: unknown) => void
  readonly clock: Clock
  /** Aborts when the adapter stops. */
  readonly stop: AbortController
  readonly startThread: typeof startBackground
}

type Call = Thread<ThreadCalls>['call']

const MAX_WAITING = 256
const MAX_BYTES = 33_554_432
/** The time from the failure of a thread to the start of the next one. It doubles after each thread that began no work. */
const [RESTART_MS, MAX_RESTART_MS] = [10_000, 600_000]
const CLOSE_MS = 10_000

/** Creates the manager of the thread, which limits the waiting work and starts another thread some time after one has failed. */
export function createBackgroundThread(options: ThreadOptions) {
  const { calls, onFailure, clock, stop } = options
  let { config } = options
  let thread: Thread<ThreadCalls> | undefined
  let restart = { atMs: -Infinity, afterMs: RESTART_MS }
  const waiting = new Map<number, number>()
  let [ids, held] = [0, 0]
  const onEnd = (cause: unknown): void => {
    thread = undefined
    const { afterMs } = restart
    restart = { atMs: clock.nowMs() + afterMs, afterMs: Math.min(MAX_RESTART_MS, afterMs * 2) }
    if (!stop.signal.aborted) onFailure(cause)
  }
  const running = (): Thread<ThreadCalls> | undefined => {
    if (thread !== undefined || stop.signal.aborted || clock.nowMs() < restart.atMs) return thread
    const start: ThreadStart = {
      ...options.start,
      config: packConfig(config),
      aheadMs: options.nowMs() - Date.now(),
      nice: options.nice ?? constants.priority.PRIORITY_LOW,
    }
    try {
      thread = options.startThread(start, calls, onEnd)
    } catch (cause) {
      onEnd(cause)
    }
    return thread
  }
  const begun = (id: number): void => {
    restart.afterMs = RESTART_MS
    held -= waiting.get(id) ?? 0
    waiting.delete(id)
  }
  let closing: Promise<void> | undefined
  const close = async (): Promise<void> => {
    stop.abort()
    const own = thread
    if (own !== undefined) await endThread(own, CLOSE_MS, clock)
  }
  return {
    /** Queues work on the thread, or returns a reason if the thread cannot take it. The promise rejects if the thread fails. */
    hand: <Result>(
      bytes: number,
      send: (call: Call, id: number) => Promise<Result>,
    ): Promise<Result> | 'full' | 'failed' | 'closed' => {
      const own = running()
      if (own === undefined) return stop.signal.aborted ? 'closed' : 'failed'
      if (waiting.size >= MAX_WAITING || held + bytes > MAX_BYTES) return 'full'
      const id = ++ids
      waiting.set(id, bytes)
      held += bytes
      // Waiting for the result does not keep the sent data in memory, because the thread has its own copy.
      return send(own.call, id).finally(() => {
        held -= waiting.get(id) ?? 0
        waiting.delete(id)
      })
    },
    /** Releases the queue place of work that the thread has begun. */
    begun,
    /** Returns the running thread, or `undefined` if none runs. Never starts a thread. */
    current: (): Pick<Thread<ThreadCalls>, 'call'> | undefined => thread,
    reload: (next: Config): void => {
      config = next
      thread?.call('use', packConfig(config)).catch(onFailure)
    },
    /** Resolves once all work has ended, or after some seconds. */
    close: () => (closing ??= close()),
  }
}

const THREAD = new URL(import.meta.url.endsWith('.ts') ? './thread.ts' : './thread.js', import.meta.url)
/** The heap limit exceeds the need of all concurrent work. Beyond it the thread ends, and the adapter continues. */
const HEAP_MIB = 384
/** The same limit as for the thread that serves clients. By default V8 would use 192 MiB for short-lived objects (docs/limits.md). */
const YOUNG_MIB = 48

/** Starts the thread, which does not keep the process alive. Calls `onEnd` once, with the error that ended the thread if there was one. */
export function startBackground(
  start: ThreadStart,
  calls: MainCalls,
  onEnd: (cause: unknown) => void,
): Thread<ThreadCalls> {
  const settings = {
    file: THREAD,
    workerData: start,
    name: 'markbridge-background',
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB, maxYoungGenerationSizeMb: YOUNG_MIB },
  }
  const ended = new AdapterError('ADP_INTERNAL', 'The thread of background work has ended.')
  return startThread<ThreadCalls>(settings, calls, ended, onEnd)
}
