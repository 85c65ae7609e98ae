/**
 * Waits for SIGINT or SIGTERM, then closes in the given order. What is under way may finish; a second signal ends the
 * program at once. Resolves when everything is closed.
 */
export async function runUntilStopped(close: () => Promise<void>): Promise<void> {
  await new Promise<void>((resolve) => {
    const onSignal = (): void => {
      process.once('SIGINT', () => process.exit(130)).once('SIGTERM', () => process.exit(143))
      resolve()
    }
    process.once('SIGINT', onSignal).once('SIGTERM', onSignal)
  })
  await close()
}
