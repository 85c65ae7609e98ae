import { setTimeout as delay } from 'node:timers/promises'

import type { Random } from '../../../src/sandbox/random.ts'
import { setClock } from './clock-file.ts'

/** Steps of clocks, until it is stopped; then all of them show the true time again. */
export interface ClockSteps {
  count(): number
  stop(): Promise<void>
}

/** A clock is never further off. */
const MAX_HOURS = 6
/** Share of the steps that are a few leases wide, and of those back to the true time. */
const SMALL_SHARE = 0.3
const TRUE_SHARE = 0.2
const MAX_SMALL_SECONDS = 6
const MAX_GAP_MS = 1_500

/** Starts to step the clocks behind `files`, one at a time. */
export function startClockSteps(random: Random, files: readonly string[]): ClockSteps {
  const stopping = new AbortController()
  const { signal } = stopping
  let count = 0
  const wait = (): Promise<void> =>
    delay(1 + random.below(MAX_GAP_MS), undefined, { signal }).catch(() => undefined)
  const isOver = (): boolean => signal.aborted
  const run = async (): Promise<void> => {
    while (!isOver()) {
      await wait()
      const file = files[random.below(files.length)]
      if (file === undefined || isOver()) return
      setClock(file, drawOffset(random))
      count += 1
    }
  }
  const running = run()
  return {
    count: () => count,
    stop: async () => {
      stopping.abort()
      await running
      for (const file of files) setClock(file, 0)
    },
  }
}

/** Whole seconds, ahead or behind. */
function drawOffset(random: Random): number {
  if (random.chance(TRUE_SHARE)) return 0
  const most = random.chance(SMALL_SHARE) ? MAX_SMALL_SECONDS : MAX_HOURS * 3_600
  return random.below(2 * most + 1) - most
}
