import { expect, it } from 'vitest'

import { AdapterError } from '../src/errors.ts'
import { actOnEach } from '../src/heartbeat.ts'
import { createManualClock } from './support/manual-clock.ts'
import { startDuties } from './support/start-duties.ts'

function started() {
  const clock = createManualClock()
  const ends: (() => void)[] = []
  let turns = 0
  const act = (): Promise<void> => {
    turns += 1
    return new Promise((resolve) => ends.push(resolve))
  }
  const { stop } = startDuties([{ name: 'one', everyMs: 100, atStop: true, act }], clock)
  const end = async (): Promise<void> => {
    for (const one of ends.splice(0)) one()
    await clock.pass(0)
  }
  return { clock, turns: () => turns, stop, end }
}

it('the heartbeat runs a duty one interval after the previous run has ended, and once more when the heartbeat stops', async () => {
  const { clock, turns, stop, end } = started()
  await clock.pass(500)
  expect(turns()).toBe(1)
  await end()
  await clock.pass(99)
  expect(turns()).toBe(1)
  await clock.pass(1)
  expect(turns()).toBe(2)
  const stopped = stop()
  await clock.pass(0)
  expect(turns()).toBe(2)
  await end()
  expect(turns()).toBe(3)
  await end()
  await stopped
  await clock.pass(5_000)
  expect(turns()).toBe(3)
})

it('the heartbeat stops after five seconds even if a run of a duty does not end', async () => {
  const { clock, turns, stop } = started()
  await clock.pass(100)
  let isStopped = false
  const stopped = stop().then(() => (isStopped = true))
  await clock.pass(4_999)
  expect(isStopped).toBe(false)
  await clock.pass(1)
  await stopped
  expect(turns()).toBe(1)
})

it('the heartbeat reports only the first of several consecutive failures, and continues with all duties', async () => {
  const clock = createManualClock()
  const results = [true, false, false, true, false]
  let others = 0
  const failing = async (): Promise<void> => {
    if (results.shift() === false) throw new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'gone')
  }
  const { failures, stop } = startDuties(
    [
      { name: 'failing', everyMs: 100, firstMs: 10, act: failing },
      { name: 'other', everyMs: 100, act: () => Promise.resolve((others += 1)) },
    ],
    clock,
  )
  await clock.pass(410)
  expect([results, failures, others]).toEqual([[], Array(2).fill('failing: ADP_JOURNAL_UNAVAILABLE'), 4])
  await stop()
})

it('actOnEach processes all items one after another, even after a failure, and rejects with the first failure', async () => {
  const done: number[] = []
  const act = async (item: number): Promise<void> => {
    done.push(item)
    await Promise.resolve()
    if (item > 1) throw new Error(`item ${item}`)
  }
  await expect(actOnEach([1, 2, 3], act)).rejects.toThrow('item 2')
  expect(done).toEqual([1, 2, 3])
})
