import type { Clock } from '../../src/clock.ts'

export interface ManualClock extends Clock {
  /** Advances the clock. Due timers run in order, each at its own time. */
  pass(ms: number): Promise<void>
}

/** Creates a clock that stands still until the test advances it. */
export function createManualClock(): ManualClock {
  let now = 0
  const due: { atMs: number; act: () => void }[] = []
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 50; turn += 1) await Promise.resolve()
  }
  return {
    nowMs: () => now,
    after: (delayMs, act) => {
      const entry = { atMs: now + delayMs, act }
      due.push(entry)
      return () => {
        const index = due.indexOf(entry)
        if (index >= 0) due.splice(index, 1)
      }
    },
    pass: async (ms) => {
      const end = now + ms
      await settle()
      for (;;) {
        due.sort((one, other) => one.atMs - other.atMs)
        const [first] = due
        if (first === undefined || first.atMs > end) break
        due.shift()
        now = first.atMs
        first.act()
        await settle()
      }
      now = end
    },
  }
}
