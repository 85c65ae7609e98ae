/** How the work of this thread was divided among turns of its event loop. */
export interface CallBudget {
  /** Processor time of the longest turn, ms. */
  readonly longestMs: number
  /** Processor time of all turns, ms. */
  readonly totalMs: number
}

/**
 * Watches the turns of the event loop until the returned function is called. Each is measured in processor time of this thread
 * and not in time that passes, so that other programs on the machine lengthen none. What the collector of garbage does in this
 * thread counts.
 */
export function watchTurns(): () => CallBudget {
  const startedMs = threadMs()
  let longestMs = 0
  let before = startedMs
  let next: NodeJS.Immediate
  const turn = (): void => {
    const now = threadMs()
    longestMs = Math.max(longestMs, now - before)
    before = now
    next = setImmediate(turn)
  }
  next = setImmediate(turn)
  return () => {
    clearImmediate(next)
    const now = threadMs()
    return { longestMs: Math.max(longestMs, now - before), totalMs: now - startedMs }
  }
}

function threadMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}
