import type { Slices, Slicing } from '../../http/slices.ts'

/** The slices of the work on one exchange. */
export interface RecordingWork extends Slices {
  /** Ends the last slice: what follows waits for the disk. */
  end(): void
}

/** Begins work in the slices that the requests of a process have, where nothing goes first. */
export function beginInSlices(slicing: Slicing): () => Promise<RecordingWork> {
  return async () => {
    const slices = slicing.open()
    await slices.next()
    return { ...slices, end: () => undefined }
  }
}
