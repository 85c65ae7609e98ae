import { expect, it } from 'vitest'

import { createProcessorShare } from '../../src/compare/processor-share.ts'
import { createManualClock } from '../support/manual-clock.ts'

/** Creates a thread whose use of processor time the test controls. The other threads of the process use `busy` processors. */
function createThread(busy = 0) {
  const clock = createManualClock()
  const stop = new AbortController()
  let own = 0
  const usedMs = () => ({ own, others: clock.nowMs() * busy })
  const share = createProcessorShare(clock, usedMs, stop.signal)
  const work = (ms: number): Promise<void> =>
    share.inTurn(() => {
      own += ms
      return Promise.resolve()
    })
  return { clock, stop, share, work }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

it.each([
  ['a tenth', 'are idle', 0, 6_000],
  ['six hundredths', 'use half a processor', 0.5, 3_600],
  ['a fiftieth', 'use a whole processor', 1, 1_200],
  ['a fiftieth', 'use several processors', 3, 1_200],
])(
  'createProcessorShare gives background work %s of a processor while the other threads %s',
  async (_share, _others, busy, expectedMs) => {
    const { clock, stop, work } = createThread(busy)
    let pieces = 0
    const working = (async () => {
      while (!stop.signal.aborted) {
        await work(5)
        pieces += 1
      }
    })()
    for (let past = 0; past < 60_000; past += 10) {
      await clock.pass(10)
      await turn()
      await turn()
    }
    expect((pieces * 5) / expectedMs).toBeGreaterThan(0.94)
    expect((pieces * 5) / expectedMs).toBeLessThan(1.06)
    stop.abort()
    await clock.pass(10)
    await working
  },
)

it('createProcessorShare carries over little unused processor time, and deducts all time that earlier work used', async () => {
  const { clock, share, work } = createThread()
  await clock.pass(60_000)
  await work(1_050)
  let isBegun = false
  const begun = share.begin().then(() => (isBegun = true))
  await clock.pass(9_900)
  await turn()
  expect(isBegun).toBe(false)
  await clock.pass(120)
  await turn()
  expect(await begun).toBe(true)
})

it('createProcessorShare lets all waiting work continue at once when the adapter stops', async () => {
  const { stop, share, work } = createThread()
  await work(1_000_000)
  const waiting = [share.begin(), share.begin()]
  stop.abort()
  expect(await Promise.all(waiting)).toHaveLength(2)
})
