import { expect, it } from 'vitest'

import { createPeriodicTask } from '../src/clock.ts'
import { createManualClock } from './support/manual-clock.ts'

function started() {
  const clock = createManualClock()
  const turns: boolean[] = []
  let ends: (() => void)[] = []
  const task = createPeriodicTask({
    clock,
    everyMs: 100,
    stopMs: 1_000,
    act: ({ isLast }) => {
      turns.push(isLast)
      return new Promise((resolve) => ends.push(resolve))
    },
  })
  task.start()
  const end = async (): Promise<void> => {
    for (const one of ends.splice(0)) one()
    ends = []
    await clock.pass(0)
  }
  return { clock, turns, task, end }
}

it('begins a turn a while after the end of the one before, and none after the last', async () => {
  const { clock, turns, task, end } = started()
  await clock.pass(500)
  expect(turns).toEqual([false])
  await end()
  await clock.pass(99)
  expect(turns).toEqual([false])
  await clock.pass(1)
  expect(turns).toEqual([false, false])
  const stopped = task.stop()
  await clock.pass(0)
  expect(turns).toEqual([false, false])
  await end()
  expect(turns).toEqual([false, false, true])
  await end()
  await stopped
  await clock.pass(5_000)
  expect(turns).toEqual([false, false, true])
})

it('ends in time where a turn does not', async () => {
  const { clock, turns, task } = started()
  await clock.pass(100)
  let isStopped = false
  const stopped = task.stop().then(() => (isStopped = true))
  await clock.pass(999)
  expect(isStopped).toBe(false)
  await clock.pass(1)
  await stopped
  expect(turns).toEqual([false])
})
