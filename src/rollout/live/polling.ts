import type { Clock } from '../../clock.ts'

/** A question that is repeated until it is stopped. */
interface Polling {
  /** Begins; resolves once the first answer is there, or is late. */
  start(): Promise<void>
  /** Asks at once; a question that is under way does not count, since it may have been answered before. */
  now(): void
  stop(): void
}

interface PollingOptions {
  readonly clock: Clock
  /** Between an answer and the next question. */
  readonly everyMs: number
  /** A question that takes longer is asked anew; its answer still counts when it comes. */
  readonly patienceMs: number
  /** Never rejects, and ends in the end: the database limits each statement. */
  readonly ask: () => Promise<void>
  /** A question took too long. */
  readonly onLate: () => void
}

/** Questions without an answer: more would only fill the queue of the database. */
const MAX_OPEN = 4

/** Creates the polling. A loop of its own timers: one that fires late asks late, and never twice for it. */
export function createPolling({ clock, everyMs, patienceMs, ask, onLate }: PollingOptions): Polling {
  let stopped = true
  let cancel = (): void => undefined
  let current: { isRepeated: boolean } | undefined
  let open = 0

  const schedule = (delayMs: number): void => {
    cancel()
    if (!stopped) cancel = clock.after(delayMs, () => void question())
  }
  const question = async (): Promise<void> => {
    if (open >= MAX_OPEN) {
      schedule(everyMs)
      return
    }
    const own = { isRepeated: false }
    current = own
    open += 1
    const late = clock.after(patienceMs, () => {
      if (current !== own || stopped) return
      current = undefined
      onLate()
      schedule(0)
    })
    await ask()
    late()
    open -= 1
    if (current !== own) return
    current = undefined
    schedule(own.isRepeated ? 0 : everyMs)
  }
  return {
    start: () => {
      stopped = false
      return new Promise((resolve) => {
        const late = clock.after(patienceMs, resolve)
        void question().then(() => {
          late()
          resolve()
        })
      })
    },
    now: () => {
      if (current === undefined) schedule(0)
      else current.isRepeated = true
    },
    stop: () => {
      stopped = true
      cancel()
    },
  }
}
