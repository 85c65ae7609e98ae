import type { Clock } from '../clock.ts'

/** Resolves after this time, or once the adapter stops. */
export function waitFor(ms: number, clock: Clock, stopped: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      cancel()
      stopped.removeEventListener('abort', end)
      resolve()
    }
    const cancel = clock.after(ms, end)
    stopped.addEventListener('abort', end)
  })
}
