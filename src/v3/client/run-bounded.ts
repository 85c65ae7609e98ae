/** Tasks that `runBounded` starts; each is known by its index, 0 to `count` - 1. */
interface BoundedTasks {
  readonly count: number
  /** The largest number of tasks that run at a time. */
  readonly concurrency: number
  /** The promise that a task waits for before it starts, while others go on; undefined: none. Where it rejects, its task has failed. */
  holdOf?(index: number): Promise<unknown> | undefined
  start(index: number): Promise<void>
  /** Asked before each task: once true, no further task starts. Default: never. */
  stopped?(): boolean
  /** Called after each start: the promise that the next start waits for; undefined: none. Where it rejects, no other task starts. */
  pause?(): Promise<void> | undefined
}

/**
 * Runs tasks, a bounded number at a time, in order as far as they are not held. Resolves when every started task has ended and no
 * other will start. A task that rejects stops the others that have not started; the result rejects once all have ended.
 */
export async function runBounded(tasks: BoundedTasks): Promise<void> {
  const { count, concurrency } = tasks
  const released: number[] = []
  let next = 0
  let running = 0
  let held = 0
  let pausing = false
  let isEnded = false
  let failure: { readonly cause: unknown } | undefined
  await new Promise<void>((resolve) => {
    const stopped = (): boolean => isEnded || failure !== undefined || tasks.stopped?.() === true
    const ended = (): void => {
      running -= 1
      pump()
    }
    const fail = (cause: unknown): void => {
      failure ??= { cause }
      pump()
    }
    const failed = (cause: unknown): void => {
      running -= 1
      fail(cause)
    }
    const begin = (): void => {
      const own = released.shift()
      const index = own ?? next++
      const hold = own === undefined ? tasks.holdOf?.(index) : undefined
      if (hold === undefined) {
        running += 1
        tasks.start(index).then(ended, failed)
        return
      }
      held += 1
      hold.then(
        () => {
          held -= 1
          released.push(index)
          pump()
        },
        (cause: unknown) => {
          held -= 1
          fail(cause)
        },
      )
    }
    const pump = (): void => {
      while (!pausing && (released.length > 0 || next < count) && running < concurrency && !stopped()) {
        begin()
        const pause = tasks.pause?.()
        if (pause === undefined) continue
        pausing = true
        const resume = (): void => {
          pausing = false
          pump()
        }
        pause.then(resume, (cause: unknown) => {
          pausing = false
          fail(cause)
        })
      }
      const isOver = stopped() || (held === 0 && released.length === 0 && next === count)
      if (running > 0 || !isOver) return
      isEnded = true
      resolve()
    }
    pump()
  })
  if (failure !== undefined) throw failure.cause
}
