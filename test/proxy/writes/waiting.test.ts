import { expect, it } from 'vitest'

import type { RecordRef } from '../../../src/journal/index.ts'
import { createWaiting } from '../../../src/proxy/writes/waiting.ts'
import { createManualClock } from '../../support/manual-clock.ts'

/** A place to wait in front of records that are open until they are taken away. */
function start(...positions: number[]) {
  const clock = createManualClock()
  const open = new Set(positions)
  const state = { asked: 0, broken: false }
  const waiting = createWaiting(
    {
      stillOpen: (records) => {
        state.asked += 1
        return state.broken
          ? Promise.reject(new Error('gone'))
          : Promise.resolve(records.filter(({ position }) => open.has(position)))
      },
    },
    clock,
  )
  const seen: string[] = []
  const until = (name: string, timeoutMs: number, ...refs: number[]): void => {
    const records = refs.map((position): RecordRef => ({ batch: 1, position }))
    void waiting.until(records, timeoutMs).then((inTime) => seen.push(`${name} ${inTime}`))
  }
  return { clock, open, state, waiting, seen, until }
}

it('ends when all are settled: at once for those of this process, else at the next look', async () => {
  const { clock, open, waiting, seen, until } = start(1, 2, 3)
  until('a', 10_000, 1, 2)
  until('b', 10_000, 3)
  until('c', 10_000, 4)
  await clock.pass(0)
  expect(seen).toEqual(['c true'])
  open.delete(1)
  waiting.settled(1, [3, 7])
  await clock.pass(0)
  expect(seen).toEqual(['c true', 'b true'])
  open.delete(2)
  await clock.pass(200)
  expect(seen).toEqual(['c true', 'b true', 'a true'])
})

it('ends without success when the time is spent, and asks nothing when nobody waits', async () => {
  const { clock, state, waiting, seen, until } = start(1)
  until('a', 500, 1)
  await clock.pass(500)
  expect(seen).toEqual(['a false'])
  const { asked } = state
  waiting.settled(1, [1])
  await clock.pass(5_000)
  expect(state.asked).toBeLessThanOrEqual(asked + 1)
})

it('waits on while the journal cannot be asked', async () => {
  const { clock, open, state, seen, until } = start(1)
  state.broken = true
  until('a', 10_000, 1)
  await clock.pass(1_000)
  expect(seen).toEqual([])
  state.broken = false
  open.delete(1)
  await clock.pass(200)
  expect(seen).toEqual(['a true'])
})
