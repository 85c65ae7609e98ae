import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'

import { openJournal } from '../../src/journal/index.ts'
import { createSharedStores } from '../../src/app/journal.ts'
import { nextRateSlots } from '../../src/journal/rate-slots.ts'
import { createRateLimits } from '../../src/upstream/index.ts'
import { systemClock } from '../../src/clock.ts'
import { eachDatabase } from '../support/each-database.ts'

describe('nextRateSlots', () => {
  it('fills each window with as many slots as the limit allows', () => {
    const asks = fc.array(fc.record({ gapMs: fc.nat(900), count: fc.integer({ min: 1, max: 6 }) }), {
      minLength: 1,
      maxLength: 20,
    })
    fc.assert(
      fc.property(
        asks,
        fc.integer({ min: 1, max: 7 }),
        fc.integer({ min: 1, max: 2_000 }),
        (list, calls, windowMs) => {
          let slots: readonly number[] = []
          let nowMs = 0
          const all: [atMs: number, askedMs: number][] = []
          for (const { gapMs, count } of list) {
            nowMs += gapMs
            const next = nextRateSlots(slots, { calls, windowMs }, count, nowMs)
            expect(next.reserved).toHaveLength(count)
            for (const atMs of next.reserved) all.push([atMs, nowMs])
            slots = next.kept
            expect(slots.length).toBeLessThanOrEqual(calls)
          }
          for (const [index, [atMs, askedMs]] of all.entries()) {
            const before = all[index - calls]?.[0] ?? -Infinity
            expect(atMs).toBe(Math.max(askedMs, before + windowMs, all[index - 1]?.[0] ?? 0))
          }
        },
      ),
    )
  })
})

describe.each(eachDatabase())('two instances with one journal in %s', (_name, { test }) => {
  async function openTwo(url: string) {
    const journals = [await openJournal({ url }), await openJournal({ url })] as const
    onTestFinished(async () => {
      for (const journal of journals) await journal.close()
    })
    return journals
  }

  test('share a limit of 5 calls a second and use every slot', async (url) => {
    const journals = await openTwo(url)
    const left: number[] = []
    /** The time in milliseconds that the slowest reservation took. */
    let slowestMs = 0
    const run = async (journal: (typeof journals)[number], calls: number): Promise<void> => {
      const sharing = createSharedStores()
      const reserve: typeof journal.rateLimit.reserve = async (...asked) => {
        const askedMs = performance.now()
        const slots = await journal.rateLimit.reserve(...asked)
        slowestMs = Math.max(slowestMs, performance.now() - askedMs)
        return slots
      }
      sharing.use({ ...journal, rateLimit: { ...journal.rateLimit, reserve } })
      const rateLimit = createRateLimits(systemClock, undefined, sharing.slotsOf).of('subscription key', 5)
      await Promise.all(
        Array.from({ length: calls }, async () => {
          const { admitted } = await rateLimit.acquire('write', 20_000)
          if (admitted) left.push(performance.now())
        }),
      )
    }
    const startedMs = performance.now()
    await Promise.all([run(journals[0], 8), run(journals[1], 7)])
    expect(left).toHaveLength(15)
    left.sort((one, other) => one - other)
    // Calls 1 and 6 of any six are a second apart, as a service with a sliding window requires.
    for (let index = 5; index < left.length; index += 1)
      expect((left[index] ?? 0) - (left[index - 5] ?? 0)).toBeGreaterThan(
        1_000 - Math.max(0, slowestMs - 100),
      )
    expect(performance.now() - startedMs).toBeLessThan(15_000)
  })

  test('pause together for one subscription key, while other keys go on', async (url) => {
    const journals = await openTwo(url)
    const limit = { calls: 2, windowMs: 60_000 }
    await journals[0].rateLimit.pauseFor('one', 30_000)
    await journals[0].rateLimit.pauseFor('one', 10)
    const [first = 0, second = 0, third = 0] = await journals[1].rateLimit.reserve('one', limit, 3)
    expect(first).toBeGreaterThan(20_000)
    expect(second).toBe(first)
    expect(third - first).toBe(60_000)
    expect(await journals[1].rateLimit.reserve('two', limit, 2)).toEqual([0, 0])
  })
})
