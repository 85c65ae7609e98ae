/**
 * Runs `task(index)` for 0 to count - 1, at most `concurrency` at a time, in order; tasks with the same key run one after
 * another in the order of their indexes, so that an older mark never overtakes a newer one of the same learner and event.
 * `stopped` is asked before each task: once true, no further task starts. Resolves when every started task has ended.
 * Tasks must not reject.
 */
export async function runOrdered(
  count: number,
  keyOf: (index: number) => string,
  concurrency: number,
  task: (index: number) => Promise<void>,
  stopped: () => boolean,
): Promise<void> {
  const successor = new Int32Array(count).fill(-1)
  const ready: number[] = []
  const last = new Map<string, number>()
  for (let index = 0; index < count; index += 1) {
    const key = keyOf(index)
    const before = last.get(key)
    if (before === undefined) ready.push(index)
    else successor[before] = index
    last.set(key, index)
  }
  // Successors join the end of the line: a worker takes what is ready, and leaves when nothing is.
  let taken = 0
  let open = count
  const waiting: (() => void)[] = []
  const worker = async (): Promise<void> => {
    while (open > 0 && !stopped()) {
      const index = ready[taken]
      if (index === undefined) {
        await new Promise<void>((resolve) => waiting.push(resolve))
        continue
      }
      taken += 1
      await task(index)
      open -= 1
      const next = successor[index] ?? -1
      if (next >= 0) ready.push(next)
      if (open === 0 || stopped()) for (const wake of waiting.splice(0)) wake()
      else if (next >= 0) waiting.pop()?.()
    }
  }
  await Promise.all(Array.from({ length: Math.min(concurrency, Math.max(ready.length, 1)) }, worker))
}
