/** The work of one slice, in bytes of a batch. Decoding this many bytes takes a few milliseconds. */
export const SLICE_WORK = 1_048_576

/** The slices into which the work of one request is divided. The event loop serves other requests between two slices. */
export interface Slices {
  /** Counts finished work, in bytes of a batch or an equivalent cost. Returns true if the caller must await `next` before it continues. */
  spend(work: number): boolean
  next(): Promise<void>
}

/** Slices that never divide the work. They are for work that no client waits for. */
export const oneSlice: Slices = { spend: () => false, next: () => Promise.resolve() }

export interface Slicing {
  open(): Slices
  /** Queues work that belongs to no request. The work runs alone in a turn of the event loop, after the slices that were queued earlier. */
  readonly later: (act: () => void) => void
}

/** Creates the queue of slices. Each turn of the event loop runs one slice, so that large requests delay other requests only slightly. */
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

/** A computation in steps: a generator that yields the cost of each step, in bytes of a batch, and returns the result. */
export type Steps<Result> = Generator<number, Result>

export function runAtOnce<Result>(steps: Steps<Result>): Result {
  let step = steps.next()
  while (step.done !== true) step = steps.next()
  return step.value
}

export async function runInSlices<Result>(steps: Steps<Result>, slices: Slices): Promise<Result> {
  let step = steps.next()
  while (step.done !== true) {
    if (slices.spend(step.value)) await slices.next()
    step = steps.next()
  }
  return step.value
}
