/** Work of one turn of the event loop: as many bytes of a batch as are decoded in a few milliseconds. */
export const SLICE_WORK = 1_048_576

/** The work of one request, cut into slices between which the event loop serves others. */
export interface Slices {
  /** Counts work that was done, in bytes of a batch or what costs as much. True: `next` is to be awaited before more is done. */
  spend(work: number): boolean
  /** Resolves when the next slice may begin. */
  next(): Promise<void>
}

/** Gives each request its slices. */
export interface Slicing {
  open(): Slices
  /** Runs work that no request has slices for in a turn of its own, after the slices that were asked for before it. */
  readonly later: (act: () => void) => void
}

/**
 * Creates the slicing of one process. One slice runs in a turn of the event loop, in the order in which they were asked for,
 * so that many large requests together hold the others up no longer than one does.
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
