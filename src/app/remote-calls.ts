import { type ResourceLimits, Worker } from 'node:worker_threads'

import { type Clock, waitFor } from '../clock.ts'
import { AdapterError, type ErrorCode, type ErrorDetail } from '../errors.ts'

/** Functions that another thread or process can call. Their arguments and results are plain values. */
type Callable<Calls> = { readonly [Name in keyof Calls]: (...args: never[]) => unknown }

/** A connection on which two threads or processes call functions of each other. Calls arrive in order. */
export interface Remote<Calls extends Callable<Calls>> {
  /** Calls a function of the other thread or process. Rejects with an `AdapterError` if the function fails or the other thread or process ends. */
  readonly call: <Name extends keyof Calls & string>(
    name: Name,
    ...args: Parameters<Calls[Name]>
  ) => Promise<Awaited<ReturnType<Calls[Name]>>>
  readonly answer: (functions: Readonly<Record<string, (...args: never[]) => unknown>>) => void
  /** Rejects all open calls after the other thread or process has ended. */
  readonly end: (cause: AdapterError) => void
}

interface Port {
  postMessage(message: Message): void
  on(event: 'message', listener: (message: unknown) => void): unknown
}

type Message =
  | { readonly kind: 'call'; readonly id: number; readonly name: string; readonly args: readonly unknown[] }
  | { readonly kind: 'result'; readonly id: number; readonly value: unknown }
  | { readonly kind: 'failure'; readonly id: number; readonly error: PackedError }

/** An error in a form that another thread or process can throw again. */
interface PackedError {
  readonly code: ErrorCode
  readonly message: string
  readonly details: readonly ErrorDetail[]
}

export function connect<Calls extends Callable<Calls>>(port: Port): Remote<Calls> {
  const waiting = new Map<number, PromiseWithResolvers<unknown>>()
  let own: Parameters<Remote<Calls>['answer']>[0] = {}
  let ids = 0
  const answer = async (id: number, name: string, args: readonly unknown[]): Promise<void> => {
    try {
      const act = own[name]
      if (act === undefined)
        throw new AdapterError(
          'ADP_INTERNAL',
          `Internal error: another thread or process called the unknown function "${name}".`,
        )
      const value: unknown = await Reflect.apply(act, undefined, args)
      port.postMessage({ kind: 'result', id, value })
    } catch (cause) {
      port.postMessage({ kind: 'failure', id, error: packError(cause) })
    }
  }
  port.on('message', (message) => {
    if (!isMessage(message)) return
    if (message.kind === 'call') {
      // Ignores the rejection: `answer` rejects only if the other thread or process has ended, and then nobody waits for the result.
      answer(message.id, message.name, message.args).catch(() => undefined)
      return
    }
    const call = waiting.get(message.id)
    waiting.delete(message.id)
    if (message.kind === 'result') call?.resolve(message.value)
    else {
      const { code, message: text, details } = message.error
      call?.reject(new AdapterError(code, text, { details }))
    }
  })
  return {
    call: (name, ...args) => {
      const id = ++ids
      const call = Promise.withResolvers<unknown>()
      waiting.set(id, call)
      port.postMessage({ kind: 'call', id, name, args })
      // The cast is safe because both threads or processes use the same type `Calls`.
      return call.promise as ReturnType<Remote<Calls>['call']>
    },
    answer: (functions) => {
      own = functions
    },
    end: (cause) => {
      for (const { reject } of waiting.values()) reject(cause)
      waiting.clear()
    },
  }
}

/** Returns true for a message of this module. Node.js and its debugger send other messages on the same channel. */
function isMessage(message: unknown): message is Message {
  if (typeof message !== 'object' || message === null || !('kind' in message)) return false
  return ['call', 'result', 'failure'].includes(String(message.kind))
}

/** Converts an error into a plain value. Drops the message of an unexpected error, because the message may quote a value. */
function packError(cause: unknown): PackedError {
  if (!(cause instanceof AdapterError))
    return {
      code: 'ADP_INTERNAL',
      message: 'An internal error occurred in another thread or process.',
      details: [],
    }
  const { code, message, details } = cause
  return { code, message, details }
}

export interface Thread<Calls extends Callable<Calls>> extends Pick<Remote<Calls>, 'call'> {
  /**
   * Asks the thread to close, and resolves once its work is finished. From this call on, the thread keeps the process alive until
   * `terminate`.
   */
  close(): Promise<unknown>
  terminate(): Promise<unknown>
}

interface ThreadSettings {
  readonly file: URL
  readonly name: string
  readonly workerData: object
  readonly resourceLimits: ResourceLimits
}

/**
 * Starts a thread that provides the functions of `Calls`, and that may call the functions in `calls`. The thread keeps the process alive
 * only while a call is open, because a process that stops would otherwise end before the answer. When the thread ends, calls that are still open reject with `ended`, and `onEnd` receives the error that ended the thread, or
 * `undefined` if there was no error.
 */
export function startThread<Calls extends Callable<Calls> & { readonly close: () => Promise<void> }>(
  { file, ...settings }: ThreadSettings,
  calls: object,
  ended: AdapterError,
  onEnd: (cause: unknown) => void,
): Thread<Calls> {
  const worker = new Worker(file, { ...settings, execArgv: [] })
  const { call, answer, end } = connect<Calls>(worker)
  answer({ ...calls })
  let failure: unknown
  worker.on('error', (cause) => {
    failure = cause
  })
  worker.on('exit', () => {
    onEnd(failure)
    end(ended)
  })
  worker.unref()
  let openCalls = 0
  const keepAlive = (): void => {
    openCalls += 1
    worker.ref()
  }
  return {
    call: (name, ...args) => {
      keepAlive()
      return call(name, ...args).finally(() => {
        openCalls -= 1
        if (openCalls === 0) worker.unref()
      })
    },
    close: () => {
      keepAlive()
      return (call as Remote<{ readonly close: () => Promise<void> }>['call'])('close')
    },
    terminate: () => worker.terminate(),
  }
}

export async function endThread(
  thread: Pick<Thread<object>, 'close' | 'terminate'>,
  withinMs: number,
  clock: Pick<Clock, 'after'>,
): Promise<void> {
  const waited = new AbortController()
  await Promise.race([thread.close().catch(() => undefined), waitFor(withinMs, clock, waited.signal)])
  waited.abort()
  await thread.terminate()
}
