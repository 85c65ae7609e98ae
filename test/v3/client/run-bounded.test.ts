import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { runBounded } from '../../../src/v3/index.ts'

/** What `runBounded` did: the order in which tasks started and ended, and the largest number of tasks that ran at the same time. */
interface Trace {
  readonly started: number[]
  readonly ended: number[]
  most: number
  done: boolean
}

/**
 * Runs tasks that end only when this function ends them. In each step it ends one of the running tasks, which `choices` selects. No clock
 * is involved. `stopped` returns true once `stopAfter` tasks have ended.
 */
async function run(
  keys: readonly string[],
  concurrency: number,
  choices: readonly number[],
  stopAfter = Number.POSITIVE_INFINITY,
): Promise<Trace> {
  const trace: Trace = { started: [], ended: [], most: 0, done: false }
  const running = new Map<number, () => void>()
  const ends = keys.map(() => Promise.withResolvers<undefined>())
  const whole = runBounded({
    count: keys.length,
    concurrency,
    waitOf: (index) => ends[keys.slice(0, index).lastIndexOf(keys[index] ?? '')]?.promise,
    start: async (index) => {
      trace.started.push(index)
      running.set(index, () => ends[index]?.resolve(undefined))
      trace.most = Math.max(trace.most, running.size)
      await ends[index]?.promise
    },
    stopped: () => trace.ended.length >= stopAfter,
  }).then(() => {
    trace.done = true
  })
  for (let step = 0; !trace.done; step += 1) {
    const open = [...running]
    const [index, end] = open[(choices[step % choices.length] ?? 0) % Math.max(open.length, 1)] ?? []
    if (index !== undefined && end !== undefined) {
      running.delete(index)
      trace.ended.push(index)
      end()
    }
    for (let turn = 0; turn < 8; turn += 1) await Promise.resolve()
    if (running.size === 0 && step > 10 * keys.length + 10) throw new Error('nothing runs and nothing ends')
  }
  await whole
  return trace
}

const keys = fc.array(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'), { maxLength: 40 })
const choices = fc.array(fc.nat(50), { minLength: 1, maxLength: 60 })
const concurrency = fc.integer({ min: 1, max: 9 })

function byKey(all: readonly string[], indexes: readonly number[]): Map<string | undefined, number[]> {
  return Map.groupBy(indexes, (index) => all[index])
}

const ascending = (list: readonly number[]): number[] => [...list].sort((one, other) => one - other)

describe('runBounded', () => {
  it('runs each task once, never exceeds the concurrency limit, and runs tasks with the same key in order', async () => {
    const stop = fc.option(fc.nat(40), { nil: Infinity })
    await fc.assert(
      fc.asyncProperty(keys, concurrency, choices, stop, async (all, most, order, stopAfter) => {
        const { started, ended, most: atOnce } = await run(all, most, order, stopAfter)
        expect(ascending(ended)).toEqual(ascending(started))
        expect(new Set(started).size).toBe(started.length)
        expect(atOnce).toBeLessThanOrEqual(most)
        expect(ended.length).toBeLessThanOrEqual(stopAfter + most)
        if (stopAfter === Infinity) expect(started.length).toBe(all.length)
        // The tasks of a key run in order and without a gap.
        const ofKey = byKey(all, [...all.keys()])
        for (const indexes of [byKey(all, started), byKey(all, ended)])
          for (const [key, own] of indexes) expect(own).toEqual(ofKey.get(key)?.slice(0, own.length))
      }),
      { numRuns: 500 },
    )
  })

  it('reaches the concurrency limit if enough tasks are ready', async () => {
    const distinct = Array.from({ length: 30 }, (_, index) => String(index))
    expect((await run(distinct, 4, [0])).most).toBe(4)
    expect((await run(distinct, 100, [3])).most).toBe(30)
    expect((await run(['a', 'a', 'b', 'b'], 4, [1])).most).toBe(2)
    expect((await run([], 4, [0])).started).toEqual([])
    expect((await run(distinct, 4, [0], 0)).started).toEqual([])
  })

  it('starts no task during a pause, and continues after the pause', async () => {
    const started: number[] = []
    const ends = Array.from({ length: 4 }, () => Promise.withResolvers<undefined>())
    const pauses: (() => void)[] = []
    const whole = runBounded({
      count: 4,
      concurrency: 3,
      start: async (index) => {
        started.push(index)
        await ends[index]?.promise
      },
      pause: () => new Promise((resolve) => pauses.push(resolve)),
    })
    const turn = (): Promise<unknown> => new Promise((resolve) => setImmediate(resolve))
    expect(started).toEqual([0])
    ends[0]?.resolve(undefined)
    await turn()
    expect(started).toEqual([0])
    for (const count of [2, 3, 4]) {
      pauses.at(-1)?.()
      await turn()
      expect(started).toHaveLength(count)
    }
    for (const end of ends) end.resolve(undefined)
    await whole
  })

  it('starts no task after a failure, and rejects when the running tasks have ended', async () => {
    const started: number[] = []
    const last = Promise.withResolvers<undefined>()
    let isOver = false
    const whole = runBounded({
      count: 4,
      concurrency: 2,
      start: async (index) => {
        started.push(index)
        if (index === 0) throw new Error('no')
        await last.promise
      },
    }).finally(() => (isOver = true))
    const failed = expect(whole).rejects.toThrow('no')
    await new Promise((resolve) => setImmediate(resolve))
    expect([started, isOver]).toEqual([[0, 1], false])
    last.resolve(undefined)
    await failed
  })

  it.each([['waitOf'], ['pause']] as const)(
    'rejects instead of waiting forever if the callback %s rejects',
    async (what) => {
      const started: number[] = []
      const whole = runBounded({
        count: 3,
        concurrency: 1,
        start: async (index) => void started.push(index),
        [what]: (index?: number) => (index === 0 ? undefined : Promise.reject(new Error('no'))),
      })
      await expect(whole).rejects.toThrow('no')
      expect(started).toEqual([0])
    },
  )
})
