/** SIGINT (Ctrl+C) and SIGTERM abort once, so that the work ends in order; the second one ends the program. `stop` takes the handlers back. */
export function untilSignal(): { readonly signal: AbortSignal; readonly stop: () => void } {
  const controller = new AbortController()
  const end = (signal: NodeJS.Signals): void => process.exit(signal === 'SIGINT' ? 130 : 143)
  const onSignal = (): void => {
    controller.abort()
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal).once('SIGINT', end).once('SIGTERM', end)
  }
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal)
  return {
    signal: controller.signal,
    stop: () => {
      for (const handler of [onSignal, end]) process.off('SIGINT', handler).off('SIGTERM', handler)
    },
  }
}

/**
 * Starts a service, waits for a signal, then closes it. The handlers are installed before the start, so that a signal right after
 * the ready line is not lost. Requests under way may finish; a second signal ends the program. `start` registers a close function
 * for each part that it has opened. They run in reverse order, also after a failed start: a part that still listens would keep the
 * process alive.
 */
export async function runUntilStopped(
  start: (onClose: (close: () => Promise<void>) => void) => Promise<void>,
): Promise<void> {
  const closers: (() => Promise<void>)[] = []
  const { signal } = untilSignal()
  const stopped = new Promise((resolve) => signal.addEventListener('abort', resolve))
  try {
    await start((close) => closers.unshift(close))
    await stopped
  } finally {
    for (const close of closers) await close()
  }
}
