/**
 * Starts something, waits for SIGINT or SIGTERM, then closes it. The signals are listened to from before the start, so that
 * one which follows a ready line at once is not lost. What is under way may finish; a second signal ends the program.
 * `start` hands over what closes each part as soon as there is one to close. The last is closed first, also where the start
 * fails half-way: a part that went on listening would keep the program up.
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
