/** A signal that aborts with Ctrl+C. */
interface Stopping {
  readonly signal: AbortSignal
  /** Takes the handlers back. */
  stop(): void
}

/** Ctrl+C and SIGTERM abort once, so that the work ends in order; the second one ends the program at once. */
export function untilSignal(): Stopping {
  const controller = new AbortController()
  const end = (): void => process.exit(130)
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
