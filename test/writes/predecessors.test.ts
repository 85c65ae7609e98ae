import { expect, it } from 'vitest'

import type { RecordRef } from '../../src/journal/index.ts'
import { createPredecessorWatch } from '../../src/writes/predecessors.ts'
import { createManualClock } from '../support/manual-clock.ts'

/** A place to wait in front of records that are open until they are taken away. */
function start(...positions: number[]) {
  const clock = createManualClock()
  const open = new Set(positions)
  const state = { asked: 0, broken: false }
  const older = new Map<number, number>()
  const waiting = createPredecessorWatch(
    {
      olderOpen: (records) => {
        state.asked += 1
        if (state.broken) return Promise.reject(new Error('gone'))
        const next = records.map(({ position }) => older.get(position))
        return Promise.resolve(
          next.map((position) => (position === undefined ? undefined : { batch: 1, position })),
        )
      },
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
  return { clock, open, older, state, waiting, seen, until }
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

it('asks again what is older than the own record, until nothing is left', async () => {
  const { clock, open, older, state, waiting, seen } = start(1, 2)
  const first = (name: string, timeoutMs: number): void => {
    void waiting
      .untilFirst({ batch: 2, position: 9 }, [{ batch: 1, position: 2 }], timeoutMs)
      .then((inTime) => seen.push(`${name} ${inTime}`))
  }
  first('a', 10_000)
  first('b', 1_000)
  older.set(9, 1)
  // The nearest ends, and the one before it is open still.
  open.delete(2)
  waiting.settled(1, [2])
  await clock.pass(900)
  expect(seen).toEqual([])
  await clock.pass(200)
  expect(seen).toEqual(['b false'])
  open.delete(1)
  state.broken = true
  waiting.settled(1, [1])
  await clock.pass(1_000)
  expect(seen).toEqual(['b false'])
  state.broken = false
  older.delete(9)
  await clock.pass(200)
  expect(seen).toEqual(['b false', 'a true'])
})
