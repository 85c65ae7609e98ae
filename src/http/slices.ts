/** Work of one turn of the event loop: as many bytes of a batch as are decoded in a few milliseconds. */
export const SLICE_WORK = 1_048_576

/** The work of one request, cut into slices between which the event loop serves others. */
export interface Slices {
  /** Counts finished work, in bytes of a batch or an equivalent cost. True: await `next` before doing more. */
  spend(work: number): boolean
  /** Resolves when the next slice may begin. */
  next(): Promise<void>
}

/** Of work that no client waits for: one slice. */
export const oneSlice: Slices = { spend: () => false, next: () => Promise.resolve() }

/** Gives each request its slices. */
export interface Slicing {
  open(): Slices
  /** Runs work without a request in a turn of its own, after the slices that were requested before. */
  readonly later: (act: () => void) => void
}

/**
 * Creates the slicing of one process. Each turn of the event loop runs one slice, in the order of requests, so that many large
 * requests together delay others no longer than one does.
 */
export function createSlicing(): Slicing {
  const line: (() => void)[] = []
  const turn = (): void => {
    const begin = line.shift()
    if (line.length > 0) setImmediate(turn)
    begin?.()
  }
  const later = (act: () => void): void => {
    line.push(act)
    if (line.length === 1) setImmediate(turn)
  }
  return {
    later,
    open: () => {
      let spent = 0
      return {
        spend: (work) => {
          spent += work
          return spent >= SLICE_WORK
        },
        next: () => {
          spent = 0
          return new Promise(later)
        },
      }
    },
  }
}

/** Work in steps: yields what each step cost, in bytes of a batch, and returns the result. */
export type Steps<Result> = Generator<number, Result>

/** The result of all steps, without a pause. */
export function runAtOnce<Result>(steps: Steps<Result>): Result {
  let step = steps.next()
  while (step.done !== true) step = steps.next()
  return step.value
}

/** The result of all steps, done in slices of a request. */
export async function runInSlices<Result>(steps: Steps<Result>, slices: Slices): Promise<Result> {
  let step = steps.next()
  while (step.done !== true) {
    if (slices.spend(step.value)) await slices.next()
    step = steps.next()
  }
  return step.value
}
