import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'

import { type DurableJournal, openJournal } from '../../src/journal/index.ts'
import { createSharedStores } from '../../src/app/journal.ts'
import { nextRateSlots } from '../../src/journal/rate-slots.ts'
import { createRateLimits } from '../../src/upstream/index.ts'
import { systemClock } from '../../src/clock.ts'
import { eachDatabase } from '../support/each-database.ts'

describe('nextRateSlots', () => {
  it('reserves the earliest slots at which no window exceeds the limit', () => {
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

describe.each(eachDatabase())('the rate limit of two instances with one journal in %s', (_name, { test }) => {
  async function openTwo(url: string) {
    const journals = [await openJournal({ url }), await openJournal({ url })] as const
    onTestFinished(async () => {
      for (const journal of journals) await journal.close()
    })
    return journals
  }

  /** Creates a limit of 5 calls per second, and adds the duration of each reservation in milliseconds to `reservations`. */
  function limitWith(journal: DurableJournal, reservations: number[]) {
    const stores = createSharedStores()
    const reserve: typeof journal.rateLimit.reserve = async (...asked) => {
      const askedMs = performance.now()
      const slots = await journal.rateLimit.reserve(...asked)
      reservations.push(performance.now() - askedMs)
      return slots
    }
    stores.use({ ...journal, rateLimit: { ...journal.rateLimit, reserve } })
    return createRateLimits(systemClock, undefined, stores.slotsOf).of('subscription key', 5)
  }

  /** Checks that any six successive calls take at least a second, as a sliding window of 5 calls requires. Allows for slow reservations. */
  function expectLimited(left: readonly number[], reservations: readonly number[]): void {
    const slowestMs = Math.max(...reservations)
    for (const [index, atMs] of left.slice(5).entries())
      expect(atMs - (left[index] ?? 0)).toBeGreaterThan(1_000 - Math.max(0, slowestMs - 100))
  }

  test('allows 5 calls per second in total, and completes 15 calls within 15 seconds', async (url) => {
    const journals = await openTwo(url)
    const left: number[] = []
    const reservations: number[] = []
    const run = async (journal: DurableJournal, calls: number): Promise<void> => {
      const rateLimit = limitWith(journal, reservations)
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
    expectLimited(left, reservations)
    expect(performance.now() - startedMs).toBeLessThan(15_000)
  })

  test('still allows 5 calls per second in total, beginning one lease period after the second instance starts', async (url) => {
    const leaseMs = 1_500
    const left: number[] = []
    const stop = new AbortController()
    const run = async (reservations: number[]): Promise<void> => {
      const journal = await openJournal({ url, leaseMs })
      onTestFinished(() => journal.close())
      const rateLimit = limitWith(journal, reservations)
      while (!stop.signal.aborted)
        if ((await rateLimit.acquire('write', 20_000, undefined, stop.signal)).admitted)
          left.push(performance.now())
    }
    const [ofFirst, ofSecond]: [number[], number[]] = [[], []]
    const first = run(ofFirst)
    // Waits until the first instance reserves no more slots. An instance that is alone makes calls without reservations.
    let before = 0
    const stopped = (): boolean => {
      const isSame = before > 0 && before === ofFirst.length
      before = ofFirst.length
      return isSame
    }
    await expect.poll(stopped, { timeout: 30_000, interval: 1_500 }).toBe(true)
    const second = run(ofSecond)
    await expect.poll(() => ofSecond.length, { timeout: 30_000 }).toBeGreaterThan(0)
    const knownMs = performance.now() + leaseMs
    const late = (): readonly number[] => left.filter((atMs) => atMs > knownMs)
    await expect.poll(() => late().length, { timeout: 30_000 }).toBeGreaterThan(15)
    stop.abort()
    await Promise.all([first, second])
    expectLimited(late(), [...ofFirst, ...ofSecond])
  })

  test('pauses the calls of both instances with one subscription key, but not with other keys', async (url) => {
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
