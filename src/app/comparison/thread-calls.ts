import { AdapterError } from '../../errors.ts'
import type { Failure, FromThread, ThreadCalls } from './messages.ts'

/** Calls from the thread of comparisons to the others. */
export interface Caller {
  readonly call: <Name extends keyof ThreadCalls>(
    name: Name,
    ...args: Parameters<ThreadCalls[Name]>
  ) => ReturnType<ThreadCalls[Name]>
  /** Takes the end of a call. */
  resolve(id: number, value: unknown): void
  reject(id: number, failure: Failure): void
}

interface Waiting {
  readonly resolve: (value: unknown) => void
  readonly reject: (cause: AdapterError) => void
}

/** Creates what calls through `post`. */
export function createCaller(post: (message: FromThread) => void): Caller {
  const waiting = new Map<number, Waiting>()
  let calls = 0
  const take = (id: number): Waiting | undefined => {
    const own = waiting.get(id)
    waiting.delete(id)
    return own
  }
  const call = (name: keyof ThreadCalls, ...args: unknown[]): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const id = ++calls
      waiting.set(id, { resolve, reject })
      // Names and arguments belong together by the type of `Caller.call`.
      post({ kind: 'call', id, name, args } as FromThread)
    })
  return {
    call: call as Caller['call'],
    resolve: (id, value) => take(id)?.resolve(value),
    reject: (id, { code = 'ADP_INTERNAL', message }) => take(id)?.reject(new AdapterError(code, message)),
  }
}

/** An error as plain values. */
export function toFailure(cause: unknown): Failure {
  const code = cause instanceof AdapterError ? cause.code : undefined
  return { code, message: cause instanceof Error ? cause.message : 'not an error' }
}
