/**
 * Starts a service, waits for SIGINT or SIGTERM, then closes it. The handlers are installed before the start, so that a signal
 * right after the ready line is not lost. Requests under way may finish; a second signal ends the program. `start` registers a
 * close function for each part that it has opened. They run in reverse order, also after a failed start: a part that still
 * listens would keep the process alive.
 */
export async function runUntilStopped(
  start: (onClose: (close: () => Promise<void>) => void) => Promise<void>,
): Promise<void> {
  const closers: (() => Promise<void>)[] = []
  const stopped = new Promise<void>((resolve) => {
    const onSignal = (): void => {
      process.off('SIGINT', onSignal).off('SIGTERM', onSignal)
      process.once('SIGINT', () => process.exit(130)).once('SIGTERM', () => process.exit(143))
      resolve()
    }
    process.on('SIGINT', onSignal).on('SIGTERM', onSignal)
  })
  try {
    await start((close) => closers.unshift(close))
    await stopped
  } finally {
    for (const close of closers) await close()
  }
}
