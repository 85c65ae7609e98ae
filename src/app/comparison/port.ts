import { AdapterError, type ErrorCode } from '../../errors.ts'

/** Functions that another thread may call. What they take and give is plain values. */
type Callable<Calls> = { readonly [Name in keyof Calls]: (...args: never[]) => unknown }

/** The line to another thread. Calls arrive in their order. */
export interface Line<Calls extends Callable<Calls>> {
  /** Calls a function of the other thread. Rejects with `AdapterError`. */
  readonly call: <Name extends keyof Calls & string>(
    name: Name,
    ...args: Parameters<Calls[Name]>
  ) => Promise<Awaited<ReturnType<Calls[Name]>>>
  /** Sets the functions that the other thread calls. */
  readonly answer: (functions: Readonly<Record<string, (...args: never[]) => unknown>>) => void
  /** Rejects all calls without an answer: the other thread has ended. */
  readonly end: (cause: AdapterError) => void
}

/** Either end of the messages between two threads. */
interface Port {
  postMessage(message: Message): void
  on(event: 'message', listener: (message: Message) => void): unknown
}

type Message =
  | { readonly kind: 'call'; readonly id: number; readonly name: string; readonly args: readonly unknown[] }
  | { readonly kind: 'result'; readonly id: number; readonly value: unknown }
  | {
      readonly kind: 'failure'
      readonly id: number
      readonly code: ErrorCode | undefined
      readonly message: string
    }

/** Connects an end of the messages. */
export function connect<Calls extends Callable<Calls>>(port: Port): Line<Calls> {
  const waiting = new Map<number, PromiseWithResolvers<unknown>>()
  let own: Parameters<Line<Calls>['answer']>[0] = {}
  let ids = 0
  const answer = async (id: number, name: string, args: readonly unknown[]): Promise<void> => {
    try {
      const act = own[name]
      if (act === undefined) throw new AdapterError('ADP_INTERNAL', `Internal error: no function "${name}".`)
      const value: unknown = await Reflect.apply(act, undefined, args)
      port.postMessage({ kind: 'result', id, value })
    } catch (cause) {
      const code = cause instanceof AdapterError ? cause.code : undefined
      const message = cause instanceof Error ? cause.message : 'not an error'
      port.postMessage({ kind: 'failure', id, code, message })
    }
  }
  port.on('message', (message) => {
    if (message.kind === 'call') {
      void answer(message.id, message.name, message.args)
      return
    }
    const call = waiting.get(message.id)
    waiting.delete(message.id)
    if (message.kind === 'result') call?.resolve(message.value)
    else call?.reject(new AdapterError(message.code ?? 'ADP_INTERNAL', message.message))
  })
  return {
    call: (name, ...args) => {
      const id = ++ids
      const call = Promise.withResolvers<unknown>()
      waiting.set(id, call)
      port.postMessage({ kind: 'call', id, name, args })
      // Both ends have their functions from one type.
      return call.promise as ReturnType<Line<Calls>['call']>
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
