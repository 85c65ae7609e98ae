/**
 * Starts something, waits for SIGINT or SIGTERM, then closes it. The signals are listened to from before the start, so that
 * one which follows a ready line at once is not lost. What is under way may finish; a second signal ends the program.
 * `start` resolves with what closes it again.
 */
export async function runUntilStopped(start: () => Promise<() => Promise<void>>): Promise<void> {
  const stopped = new Promise<void>((resolve) => {
    const onSignal = (): void => {
      process.off('SIGINT', onSignal).off('SIGTERM', onSignal)
      process.once('SIGINT', () => process.exit(130)).once('SIGTERM', () => process.exit(143))
      resolve()
    }
    process.on('SIGINT', onSignal).on('SIGTERM', onSignal)
  })
  const close = await start()
  await stopped
  await close()
}
