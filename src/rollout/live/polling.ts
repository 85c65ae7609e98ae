import type { Clock } from '../../clock.ts'

/** A question that is repeated until it is stopped. */
export interface Polling {
  /** Begins; resolves once the first answer is there, or is late. */
  start(): Promise<void>
  /** Asks at once; a question that is under way does not count, since it may have been answered before. */
  now(): void
  stop(): void
}

export interface PollingOptions {
  readonly clock: Clock
  /** Between an answer and the next question. */
  readonly everyMs: number
  /** A question that takes longer is asked anew; its answer still counts when it comes. */
  readonly patienceMs: number
  /** Never rejects. */
  readonly ask: () => Promise<void>
  /** A question took too long. */
  readonly onLate: () => void
}

/** Questions without an answer: more would only fill the queue of the database. */
const MAX_OPEN = 4
/** After that the connection of a question is taken for dead. */
const OPEN_MS = 30_000

/** Creates the polling. A loop of its own timers: one that fires late asks late, and never twice for it. */
export function createPolling({ clock, everyMs, patienceMs, ask, onLate }: PollingOptions): Polling {
  let stopped = true
  let cancel = (): void => undefined
  let current: object | undefined
  let again = false
  const isWanted = (): boolean => again
  const open = new Set<object>()

  const schedule = (delayMs: number): void => {
    cancel()
    if (!stopped) cancel = clock.after(delayMs, () => void question())
  }
  const question = async (): Promise<void> => {
    if (open.size >= MAX_OPEN) {
      schedule(everyMs)
      return
    }
    const own = {}
    current = own
    again = false
    open.add(own)
    const forget = clock.after(OPEN_MS, () => open.delete(own))
    const late = clock.after(patienceMs, () => {
      if (current !== own || stopped) return
      current = undefined
      onLate()
      schedule(0)
    })
    await ask()
    forget()
    late()
    open.delete(own)
    if (current !== own) return
    current = undefined
    schedule(isWanted() ? 0 : everyMs)
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
      else again = true
    },
    stop: () => {
      stopped = true
      cancel()
    },
  }
}
