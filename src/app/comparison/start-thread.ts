import { Worker } from 'node:worker_threads'

import type { FromThread, ThreadStart, ToThread } from './messages.ts'

/** The thread of comparisons, as the others see it. */
export interface ComparisonThread {
  post(message: ToThread, transfer?: readonly ArrayBuffer[]): void
  /** Lets it end what it has begun. From now on it keeps the process alive, until `terminate`. */
  close(): void
  /** Ends it at once. */
  terminate(): Promise<void>
}

/** The file beside this one, as built or as source. */
const THREAD = new URL(import.meta.url.endsWith('.ts') ? './thread.ts' : './thread.js', import.meta.url)

/** More than all that is offered and asked for at the same time takes; beyond it the thread ends, and the adapter goes on. */
const HEAP_MIB = 384

/** Starts the thread; it does not keep the process alive. `onEnd` is called once, with the error that ended it where there was one. */
export function startComparisonThread(
  start: ThreadStart,
  onMessage: (message: FromThread) => void,
  onEnd: (cause: unknown) => void,
): ComparisonThread {
  const worker = new Worker(THREAD, {
    workerData: start,
    execArgv: [],
    name: 'markbridge-compare',
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB },
  })
  let failure: unknown
  worker.on('message', onMessage)
  worker.on('error', (cause) => {
    failure = cause
  })
  worker.on('exit', () => onEnd(failure))
  worker.unref()
  const post: ComparisonThread['post'] = (message, transfer = []) => worker.postMessage(message, transfer)
  return {
    post,
    close: () => {
      worker.ref()
      post({ kind: 'close' })
    },
    terminate: async () => {
      await worker.terminate()
    },
  }
}
