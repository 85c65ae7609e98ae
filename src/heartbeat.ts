import { type Clock, waitFor } from './clock.ts'
import { AdapterError } from './errors.ts'

export interface Duty {
  readonly name: string
  /** The time from the end of one call of `act` to the start of the next, in milliseconds. */
  readonly everyMs: number
  /** The time from the addition of the duty to the first call of `act`, in milliseconds. Default: `everyMs`. */
  readonly firstMs?: number
  /** True if `act` is called once more when the instance stops. */
  readonly atStop?: boolean
  /** Does the work of the duty. A rejection does not end the duty. Only the first of successive rejections is reported. */
  readonly act: () => Promise<unknown>
}

interface Beat {
  readonly duty: Duty
  running: Promise<void>
  cancel: () => void
  isFailing: boolean
}

/** The longest time that a stop waits for duties. The limit keeps an unresponsive journal from blocking the end of the process. */
const STOP_MS = 5_000

export type Heartbeat = ReturnType<typeof createHeartbeat>

/** Creates the heartbeat, which runs recurring duties. Only the first of several failures in a row is passed to `onFailure`. */
export function createHeartbeat(
  clock: Pick<Clock, 'after'>,
  onFailure: (failure: { readonly work: string; readonly code: string }) => void,
) {
  const beats: Beat[] = []
  let isStopped = false
  const turn = async (beat: Beat): Promise<void> => {
    const { name: work, act } = beat.duty
    try {
      await act()
      beat.isFailing = false
    } catch (cause) {
      if (!beat.isFailing)
        onFailure({ work, code: cause instanceof AdapterError ? cause.code : 'ADP_INTERNAL' })
      beat.isFailing = true
    }
  }
  const schedule = (beat: Beat, afterMs: number): void => {
    if (isStopped) return
    beat.cancel = clock.after(afterMs, () => {
      beat.running = turn(beat).then(() => schedule(beat, beat.duty.everyMs))
    })
  }
  return {
    add: (...duties: readonly Duty[]): void => {
      for (const duty of duties) {
        const beat = { duty, running: Promise.resolve(), cancel: () => undefined, isFailing: false }
        beats.push(beat)
        schedule(beat, duty.firstMs ?? duty.everyMs)
      }
    },
    /** Stops all duties. Waits up to 5 s for running duties, and for the last call of each duty with `atStop`. */
    stop: async (): Promise<void> => {
      isStopped = true
      const ended = new AbortController()
      const last = beats.map(async (beat) => {
        beat.cancel()
        await beat.running
        if (beat.duty.atStop === true) await turn(beat)
      })
      await Promise.race([Promise.all(last), waitFor(STOP_MS, clock, ended.signal)])
      ended.abort()
    },
  }
}

/** Calls `act` for one item after another. Rejects with the first failure, but only after `act` has been called for every item. */
export async function actOnEach<Item>(
  items: Iterable<Item>,
  act: (item: Item) => Promise<void>,
): Promise<void> {
  const turns: Promise<void>[] = []
  for (const item of items) {
    turns.push(act(item))
    await Promise.allSettled(turns)
  }
  await Promise.all(turns)
}
