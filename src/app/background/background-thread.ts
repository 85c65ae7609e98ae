import { constants } from 'node:os'

import type { Clock } from '../../clock.ts'
import { type Config, packConfig } from '../../config/index.ts'
import { AdapterError } from '../../errors.ts'
import { endThread, startThread, type Thread } from '../remote-calls.ts'
import type { MainCalls, ThreadCalls, ThreadStart } from './calls.ts'

interface ThreadOptions {
  readonly config: Config
  readonly start: Omit<ThreadStart, 'config' | 'aheadMs' | 'nice'>
  /** The nice value of the thread, on Linux. Default 19, the lowest priority. */
  readonly nice: number | undefined
  readonly nowMs: () => number
  readonly calls: MainCalls
  /** Called with what ended a thread, or kept it from its start. */
  readonly onFailure: (cause: unknown) => void
  readonly clock: Clock
  /** Aborts when the adapter stops. */
  readonly stop: AbortController
  readonly startThread: typeof startBackground
}

type Call = Thread<ThreadCalls>['call']

/** The most that waits for the thread. */
const MAX_WAITING = 256
const MAX_BYTES = 33_554_432
/** From the end of a thread that failed to the start of the next one; twice as long after each that did not begin anything. */
const [RESTART_MS, MAX_RESTART_MS] = [10_000, 600_000]
const CLOSE_MS = 10_000

/** Creates the owner of the thread: it bounds what waits for it, and starts another one some time after one has failed. */
export function createBackgroundThread(options: ThreadOptions) {
  const { calls, onFailure, clock, stop } = options
  let { config } = options
  let thread: Thread<ThreadCalls> | undefined
  let restart = { atMs: -Infinity, afterMs: RESTART_MS }
  /** The bytes of what waits. */
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
    /** Queues work on the thread. Returns the reason where the queue is full or the thread is down; the promise rejects if the thread fails. */
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
      // What waits for the end does not keep what was sent: the thread has its own copy.
      return send(own.call, id).finally(() => {
        held -= waiting.get(id) ?? 0
        waiting.delete(id)
      })
    },
    /** The turn of this work has come. */
    begun,
    /** The thread that runs; none is started. */
    current: (): Pick<Thread<ThreadCalls>, 'call'> | undefined => thread,
    /** Another configuration is in use. */
    reload: (next: Config): void => {
      config = next
      thread?.call('use', packConfig(config)).catch(onFailure)
    },
    /** Resolves once all that was begun has ended, or some seconds have passed. */
    close: () => (closing ??= close()),
  }
}

/** The file beside this one, as built or as source. */
const THREAD = new URL(import.meta.url.endsWith('.ts') ? './thread.ts' : './thread.js', import.meta.url)
/** More than all that is offered and asked for at the same time takes; beyond it the thread ends, and the adapter goes on. */
const HEAP_MIB = 384
/** Of it and its copy, as for the thread that serves: by default V8 would take 192 MiB for objects that are dead at once (docs/limits.md). */
const YOUNG_MIB = 48

/** Starts the thread; it does not keep the process alive. `onEnd` is called once, with the error that ended it where there was one. */
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
