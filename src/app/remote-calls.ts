import { type ResourceLimits, Worker } from 'node:worker_threads'

import { type Clock, waitFor } from '../clock.ts'
import { AdapterError, type ErrorCode, type ErrorDetail } from '../errors.ts'

/** Functions that another thread or process may call. What they take and give is plain values. */
type Callable<Calls> = { readonly [Name in keyof Calls]: (...args: never[]) => unknown }

/** The connection to another thread or process. Calls arrive in their order. */
export interface Remote<Calls extends Callable<Calls>> {
  /** Calls a function of the other side. Rejects with `AdapterError`. */
  readonly call: <Name extends keyof Calls & string>(
    name: Name,
    ...args: Parameters<Calls[Name]>
  ) => Promise<Awaited<ReturnType<Calls[Name]>>>
  /** Sets the functions that the other side calls. */
  readonly answer: (functions: Readonly<Record<string, (...args: never[]) => unknown>>) => void
  /** Rejects all calls without an answer: the other side has ended. */
  readonly end: (cause: AdapterError) => void
}

/** Either end of the messages between two threads or processes. */
interface Port {
  postMessage(message: Message): void
  on(event: 'message', listener: (message: unknown) => void): unknown
}

type Message =
  | { readonly kind: 'call'; readonly id: number; readonly name: string; readonly args: readonly unknown[] }
  | { readonly kind: 'result'; readonly id: number; readonly value: unknown }
  | { readonly kind: 'failure'; readonly id: number; readonly error: PackedError }

/** An error as another thread or process can throw it again. */
interface PackedError {
  readonly code: ErrorCode
  readonly message: string
  readonly details: readonly ErrorDetail[]
}

/** Connects an end of the messages: each side calls the functions that the other one answers. */
export function connect<Calls extends Callable<Calls>>(port: Port): Remote<Calls> {
  const waiting = new Map<number, PromiseWithResolvers<unknown>>()
  let own: Parameters<Remote<Calls>['answer']>[0] = {}
  let ids = 0
  const answer = async (id: number, name: string, args: readonly unknown[]): Promise<void> => {
    try {
      const act = own[name]
      if (act === undefined) throw new AdapterError('ADP_INTERNAL', `Internal error: no function "${name}".`)
      const value: unknown = await Reflect.apply(act, undefined, args)
      port.postMessage({ kind: 'result', id, value })
    } catch (cause) {
      port.postMessage({ kind: 'failure', id, error: packError(cause) })
    }
  }
  port.on('message', (message) => {
    if (!isMessage(message)) return
    if (message.kind === 'call') {
      // The other side has gone, and waits for nothing.
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
      // Both ends have their functions from one type.
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

/** Node and its debugger send messages of their own between processes. */
function isMessage(message: unknown): message is Message {
  if (typeof message !== 'object' || message === null || !('kind' in message)) return false
  return ['call', 'result', 'failure'].includes(String(message.kind))
}

/** Of an error that was not foreseen no text is passed on: it may quote a value. */
function packError(cause: unknown): PackedError {
  if (!(cause instanceof AdapterError))
    return { code: 'ADP_INTERNAL', message: 'Internal error in another thread or process.', details: [] }
  const { code, message, details } = cause
  return { code, message, details }
}

/** A thread that runs. */
export interface Thread<Calls extends Callable<Calls>> extends Pick<Remote<Calls>, 'call'> {
  /** Resolves once it has ended what it has begun. From now on it keeps the process alive, until `terminate`. */
  close(): Promise<unknown>
  /** Ends it at once. */
  terminate(): Promise<unknown>
}

interface ThreadSettings {
  /** As built or as source. */
  readonly file: URL
  readonly name: string
  readonly workerData: object
  readonly resourceLimits: ResourceLimits
}

/**
 * Starts a thread that answers `Calls`, with `close` among them, and calls `calls`; it does not keep the process alive. `onEnd` is called once,
 * with the error that ended it where there was one; calls without an answer are rejected with `ended`.
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
  return {
    call,
    close: () => {
      worker.ref()
      return (call as Remote<{ readonly close: () => Promise<void> }>['call'])('close')
    },
    terminate: () => worker.terminate(),
  }
}

/** Has a thread end what it has begun, for this time at most, and ends it. */
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
