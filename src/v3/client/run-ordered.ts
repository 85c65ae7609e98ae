/** Tasks that `runOrdered` starts; each is known by its index, 0 to `count` - 1. */
export interface OrderedTasks {
  readonly count: number
  /** The largest number of tasks that run at a time. */
  readonly concurrency: number
  /** Tasks with the same key run one after another, in the order of their indexes. */
  keyOf(index: number): string
  /** The promise that a task waits for before it starts; undefined: none. Must not reject. */
  holdOf?(index: number): Promise<void> | undefined
  /** Starts a task; it calls `done(index)` once, when it has ended. */
  start(index: number, done: (index: number) => void): void
  /** Asked before each task: once true, no further task starts. */
  stopped(): boolean
  /** Called after each start: the promise that the next task waits for, so that large tasks do not start in one turn; undefined: none. */
  pause?(): Promise<void> | undefined
}

/**
 * Runs tasks in order, a bounded number at a time, those with the same key one after another, so that an older mark never
 * overtakes a newer one of the same learner and event. Resolves when every started task has ended and no other will start.
 */
export function runOrdered(tasks: OrderedTasks): Promise<void> {
  const { count, concurrency } = tasks
  const successor = new Int32Array(count).fill(-1)
  const ready: number[] = []
  const last = new Map<string, number>()
  for (let index = 0; index < count; index += 1) {
    const key = tasks.keyOf(index)
    const before = last.get(key)
    if (before === undefined) ready.push(index)
    else successor[before] = index
    last.set(key, index)
  }
  return new Promise((resolve) => {
    let taken = 0
    let running = 0
    let held = 0
    const released = new Set<number>()
    let pumping = false
    let pausing = false
    const done = (index: number): void => {
      running -= 1
      const next = successor[index] ?? -1
      // Successors join the end of the line.
      if (next >= 0) ready.push(next)
      if (!pumping) pump()
    }
    const begin = (index: number): void => {
      const hold = released.has(index) ? undefined : tasks.holdOf?.(index)
      if (hold === undefined) {
        running += 1
        tasks.start(index, done)
        return
      }
      held += 1
      void hold.then(() => {
        held -= 1
        released.add(index)
        ready.push(index)
        if (!pumping) pump()
      })
    }
    const goOn = (): void => {
      pausing = false
      pump()
    }
    const pump = (): void => {
      // A task that ends at once must not start the next one from within: thousands would nest.
      pumping = true
      while (!pausing && taken < ready.length && running < concurrency && !tasks.stopped()) {
        begin(ready[taken++] ?? -1)
        const pause = tasks.pause?.()
        if (pause !== undefined) void pause.then(goOn, goOn)
        pausing = pause !== undefined
      }
      pumping = false
      if (running === 0 && (tasks.stopped() || (held === 0 && taken === ready.length))) resolve()
    }
    pump()
  })
}
