import { type Clock, waitFor } from './clock.ts'
import { AdapterError } from './errors.ts'

/** Work that an instance does from time to time. */
export interface Duty {
  /** The name in the log. */
  readonly name: string
  /** Time from the end of one turn to the next turn. */
  readonly everyMs: number
  /** Time from the start to the first turn. Default `everyMs`. */
  readonly firstMs?: number
  /** True if a last turn is due when the instance stops. */
  readonly atStop?: boolean
  /** Takes a turn; a rejection is logged, and the next turn takes place all the same. */
  readonly act: () => Promise<unknown>
}

interface Beat {
  readonly duty: Duty
  running: Promise<void>
  cancel: () => void
  isFailing: boolean
}

/** A journal that does not answer must not keep the process from its end. */
const STOP_MS = 5_000

export type Heartbeat = ReturnType<typeof createHeartbeat>

/**
 * Creates the heartbeat of an instance, which calls its duties when they are due. Turns of one duty never overlap. `onFailure` is called for the first
 * of several failures in a row.
 */
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
    /** Begins with these duties. */
    add: (...duties: readonly Duty[]): void => {
      for (const duty of duties) {
        const beat = { duty, running: Promise.resolve(), cancel: () => undefined, isFailing: false }
        beats.push(beat)
        schedule(beat, duty.firstMs ?? duty.everyMs)
      }
    },
    /** Takes the last turns, and resolves once they are over or 5 s have passed. */
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

/** Acts on one item after the other, and rejects with the first failure once all items had their turn. */
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
