/** Tasks that run with bounded concurrency. The index of a task is a number from 0 to `count` - 1. */
interface BoundedTasks {
  readonly count: number
  readonly concurrency: number
  /** Returns a promise that must resolve before this task starts, or `undefined` to start at once. If the promise rejects, the task fails. */
  waitOf?(index: number): Promise<unknown> | undefined
  start(index: number): Promise<void>
  /** Called before each task starts. Once it returns true, no other task starts. Default: always false. */
  stopped?(): boolean
  /**
   * Called after each task starts. If it returns a promise, the next task starts once the promise resolves. If the promise rejects, no other
   * task starts.
   */
  pause?(): Promise<void> | undefined
}

/**
 * Runs tasks in the order of their indexes, except for tasks that wait for `waitOf`. Resolves when every started task has ended and no
 * other task will start. If a task rejects, no other task starts, and the returned promise rejects once the running tasks have ended.
 */
export async function runBounded(tasks: BoundedTasks): Promise<void> {
  const { count, concurrency } = tasks
  const released: number[] = []
  let next = 0
  let running = 0
  let waiting = 0
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
      const wait = own === undefined ? tasks.waitOf?.(index) : undefined
      if (wait === undefined) {
        running += 1
        tasks.start(index).then(ended, failed)
        return
      }
      waiting += 1
      wait.then(
        () => {
          waiting -= 1
          released.push(index)
          pump()
        },
        (cause: unknown) => {
          waiting -= 1
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
      const isOver = stopped() || (waiting === 0 && released.length === 0 && next === count)
      if (running > 0 || !isOver) return
      isEnded = true
      resolve()
    }
    pump()
  })
  if (failure !== undefined) throw failure.cause
}
