import { readEnvironment } from '../config/index.ts'

/** The scripts of package.json that run this program. */
const SCRIPTS: ReadonlySet<string | undefined> = new Set(['start', 'markbridge'])
const PARENT_CHECK_MS = 200

/**
 * Calls `end` when the shell of `npm run` has exited. npm sends signals to the shell, and the shell does not forward them to this program.
 */
function onceShellEnds(end: () => void): () => void {
  const shell = process.ppid
  const check = (): void => {
    if (process.ppid !== shell) end()
  }
  const timer = SCRIPTS.has(readEnvironment().npmScript)
    ? setInterval(check, PARENT_CHECK_MS).unref()
    : undefined
  return () => clearInterval(timer)
}

/** Returns a signal that aborts on the first SIGINT (Ctrl+C) or SIGTERM. A second signal ends the program. `stop` removes the handlers. */
export function untilSignal(): { readonly signal: AbortSignal; readonly stop: () => void } {
  const controller = new AbortController()
  const end = (signal: NodeJS.Signals): void => process.exit(signal === 'SIGINT' ? 130 : 143)
  const onSignal = (): void => {
    unwatch()
    controller.abort()
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal).once('SIGINT', end).once('SIGTERM', end)
  }
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal)
  const unwatch = onceShellEnds(onSignal)
  return {
    signal: controller.signal,
    stop: () => {
      unwatch()
      for (const handler of [onSignal, end]) process.off('SIGINT', handler).off('SIGTERM', handler)
    },
  }
}

/**
 * Starts a service, waits for SIGINT or SIGTERM, and closes the service. The signal handlers are installed before the start, so that a
 * signal right after the ready line is not lost. `start` registers a close function for each resource that it opens.
 * The functions run in reverse order, and also after a failed start, because an open listener would keep the process alive.
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
