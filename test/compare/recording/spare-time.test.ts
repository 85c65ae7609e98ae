import { describe, expect, it } from 'vitest'

import { createSpareTime } from '../../../src/compare/recording/spare-time.ts'
import { createManualClock } from '../../support/manual-clock.ts'

/** A process whose idle time is a share of all; `begun` grows as work begins. */
function createProcess(idleShare: number) {
  const clock = createManualClock()
  const stop = new AbortController()
  const later = (act: () => void): void => void setImmediate(act)
  const idleMs = (): number => clock.nowMs() * idleShare
  return { clock, stop, begin: createSpareTime({ clock, idleMs, later, stopped: stop.signal }) }
}

const pass = async (clock: ReturnType<typeof createManualClock>, ms: number): Promise<void> => {
  const endMs = clock.nowMs() + ms
  while (clock.nowMs() < endMs) {
    await clock.pass(10)
    await new Promise((resolve) => setImmediate(resolve))
    await new Promise((resolve) => setImmediate(resolve))
  }
}

/** Pieces of work of 10 ms each that fit into a minute. */
async function piecesInMinute(idleShare: number): Promise<number> {
  const { clock, begin, stop } = createProcess(idleShare)
  let pieces = 0
  const work = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      const turns = await begin()
      pieces += 1
      await clock.pass(10)
      turns.end()
    }
  }
  const working = work()
  await pass(clock, 60_000)
  stop.abort()
  await pass(clock, 10)
  await working
  return pieces
}

describe('spare time', () => {
  it.each([
    ['a third of it where the process is idle', 1, 2_120],
    ['a third of the idle half', 0.5, 1_120],
    ['a fiftieth where clients leave none', 0, 125],
  ])('is %s', async (_name, idleShare, expected) => {
    const pieces = await piecesInMinute(idleShare)
    expect(pieces / expected).toBeGreaterThan(0.95)
    expect(pieces / expected).toBeLessThan(1.05)
  })

  it('ends a turn after half a millisecond, and counts it', async () => {
    const { clock, begin } = createProcess(0)
    const turns = await begin()
    expect(turns.spend(1)).toBe(false)
    await clock.pass(60)
    expect(turns.spend(1)).toBe(true)
    let isNext = false
    const next = turns.next().then(() => (isNext = true))
    await pass(clock, 300)
    expect(isNext).toBe(false)
    await pass(clock, 700)
    expect(await next).toBe(true)
  })

  it('lets all that wait go on at the end of the adapter', async () => {
    const { clock, begin, stop } = createProcess(0)
    const turns = await begin()
    await clock.pass(1_000)
    turns.end()
    const waiting = [begin(), begin()]
    await pass(clock, 100)
    // Without another timer: those of recordings do not keep a process alive.
    stop.abort()
    expect(await Promise.all(waiting)).toHaveLength(2)
  })
})
