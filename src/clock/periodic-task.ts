import type { Clock } from '../clock.ts'

/** Work that is repeated while the adapter runs, and done a last time at its end. */
export interface PeriodicTask {
  start(): void
  /** Does it a last time, and resolves once that is done or `stopMs` have passed. */
  stop(): Promise<void>
}

interface PeriodicTaskOptions {
  readonly clock: Pick<Clock, 'after'>
  /** Between the end of a turn and the next one. */
  readonly everyMs: number
  /** From the start to the first turn. Default `everyMs`. */
  readonly firstMs?: number
  /** How long the end may take: a journal that does not answer must not keep the process from its end. */
  readonly stopMs: number
  /** Never rejects; `isLast`: at the end. */
  readonly act: (turn: { readonly isLast: boolean }) => Promise<void>
}

/** Creates a task whose turns never overlap. */
export function createPeriodicTask(options: PeriodicTaskOptions): PeriodicTask {
  const { clock, everyMs, firstMs = everyMs, stopMs, act } = options
  let cancel = (): void => undefined
  let running = Promise.resolve()
  const schedule = (afterMs: number): void => {
    cancel = clock.after(afterMs, () => {
      running = act({ isLast: false }).finally(() => schedule(everyMs))
    })
  }
  return {
    start: () => schedule(firstMs),
    stop: async () => {
      cancel()
      const last = running.then(() => {
        cancel()
        return act({ isLast: true })
      })
      let stopWaiting = (): void => undefined
      const waited = new Promise<void>((resolve) => {
        stopWaiting = clock.after(stopMs, resolve)
      })
      await Promise.race([last, waited])
      stopWaiting()
    },
  }
}
