import { constants } from 'node:os'

import type { Clock } from '../../clock.ts'
import { type Config, packConfig } from '../../config/index.ts'
import { AdapterError } from '../../errors.ts'
import { endThread, startThread, type Thread } from '../remote-calls.ts'
import type { MainCalls, ThreadCalls, ThreadStart } from './calls.ts'

interface ThreadOptions {
  readonly config: Config
  readonly start: Omit<ThreadStart, 'config' | 'aheadMs' | 'nice'>
  /** The nice value of the thread, on Linux. Default: 19, which is the lowest priority. */
  readonly nice: number | undefined
  readonly nowMs: () => number
  readonly calls: MainCalls
  /** A callback that receives the error that ended the thread or prevented its start. */
  readonly onFailure: (cause: unknown) => void
  readonly clock: Clock
  readonly stop: AbortController
  readonly startThread: typeof startBackground
}

type Call = Thread<ThreadCalls>['call']

const MAX_WAITING = 256
const MAX_BYTES = 33_554_432
/**
 * The first and the longest pause in milliseconds after the failure of a thread. The pause doubles after each thread that failed before it
 * began any work.
 */
const [RESTART_MS, MAX_RESTART_MS] = [10_000, 600_000]
const CLOSE_MS = 10_000

/** Creates the manager of the background thread, which limits the waiting work and restarts a failed thread after a pause. */
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
    /** Queues work on the thread, or returns the reason why the thread cannot take the work. The promise rejects if the thread fails. */
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
      // Keeps no reference to the sent bytes, so that they can be freed during the wait. The other thread has its own copy.
      return send(own.call, id).finally(() => {
        held -= waiting.get(id) ?? 0
        waiting.delete(id)
      })
    },
    /** Removes work from the queue when the thread has begun this work. */
    begun,
    /** Returns the running thread, or `undefined` if no thread is running. Never starts a thread. */
    current: (): Pick<Thread<ThreadCalls>, 'call'> | undefined => thread,
    reload: (next: Config): void => {
      config = next
      thread?.call('use', packConfig(config)).catch(onFailure)
    },
    /** Ends the thread. Resolves once all work has ended, at the latest after 10 s. */
    close: () => (closing ??= close()),
  }
}

const THREAD = new URL(import.meta.url.endsWith('.ts') ? './thread.ts' : './thread.js', import.meta.url)
/** The heap limit of the thread, which is more than all concurrent work needs. Beyond the limit the thread ends, but not the adapter. */
const HEAP_MIB = 384
/** The limit for short-lived objects, as in the main thread. Without a limit V8 would use 192 MiB (docs/limits.md). */
const YOUNG_MIB = 48

/** Starts the background thread, which does not keep the process alive. Calls `onEnd` once, with the error if an error ended the thread. */
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
  const ended = new AdapterError(
    'ADP_INTERNAL',
    'The background thread has ended. Its comparisons were not finished.',
  )
  return startThread<ThreadCalls>(settings, calls, ended, onEnd)
}
