import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import {
  type CallPriority,
  createRateLimit,
  createRateLimits,
  type QueueKey,
  type RateLimit,
} from '../../src/upstream/index.ts'
import { createManualClock, type ManualClock } from '../support/manual-clock.ts'

/** Returns the queue key of an owner `partner` or `partner/owner`. A `?` at the end marks an owner that V3 has not accepted yet. */
function shareOf(owner = 'a'): QueueKey {
  return { partner: owner.charAt(0), owner, isAccepted: () => !owner.endsWith('?') }
}

/** Requests a call, and logs when it was admitted or why it was refused. */
function ask(
  { clock, rateLimit, log }: Pick<Started, 'clock' | 'rateLimit' | 'log'>,
  name: string,
  {
    priority = 'write',
    queueKey,
    waitMs = Infinity,
  }: { priority?: CallPriority; queueKey?: string; waitMs?: number } = {},
): void {
  void rateLimit
    .acquire(priority, waitMs, shareOf(queueKey))
    .then((admission) => log.push([admission.admitted ? name : `${name} ${admission.reason}`, clock.nowMs()]))
}

interface Started {
  readonly clock: ManualClock
  readonly rateLimit: RateLimit
  readonly log: [name: string, atMs: number][]
}

function start(callsPerSecond: number, maxWaiting?: number): Started {
  const clock = createManualClock()
  const limit = maxWaiting === undefined ? {} : { maxWaiting }
  return { clock, rateLimit: createRateLimit({ callsPerSecond, clock, ...limit }), log: [] }
}

describe('createRateLimit', () => {
  it('never exceeds the rate in any second, and delays no call longer than necessary (service-facts 9)', async () => {
    const arrivals = fc.array(fc.integer({ min: 0, max: 700 }), { minLength: 1, maxLength: 40 })
    await fc.assert(
      fc.asyncProperty(arrivals, fc.integer({ min: 1, max: 7 }), async (gaps, rate) => {
        const { clock, rateLimit, log } = start(rate)
        for (const gap of gaps) {
          await clock.pass(gap)
          ask({ clock, rateLimit, log }, 'call')
        }
        await clock.pass(100_000)
        const times = log.map(([, atMs]) => atMs)
        expect(times.length).toBe(gaps.length)
        for (const [index, atMs] of times.entries()) {
          const before = times[index - rate]
          if (before !== undefined) expect(atMs - before).toBeGreaterThanOrEqual(1_000)
        }
        expect((times.at(-1) ?? 0) - (times[0] ?? 0)).toBeLessThanOrEqual(
          gaps.slice(1).reduce((sum, gap) => sum + gap, 0) + Math.ceil(gaps.length / rate) * 1_050,
        )
      }),
      { numRuns: 100 },
    )
  })

  it('admits one call every two seconds if the rate is 0.5 calls per second', async () => {
    const { clock, rateLimit, log } = start(0.5)
    for (const name of ['a', 'b', 'c']) ask({ clock, rateLimit, log }, name)
    await clock.pass(10_000)
    expect(log).toEqual([['a', 0], ['b', 2_050], ['c', 4_100]]) // prettier-ignore
  })

  it('admits writes before reads, and reads before comparison calls', async () => {
    const { clock, rateLimit, log } = start(1)
    ask({ clock, rateLimit, log }, 'first')
    for (const priority of ['comparison', 'read', 'write', 'comparison', 'write'] as const)
      ask({ clock, rateLimit, log }, priority, { priority })
    await clock.pass(10_000)
    expect(log.map(([name]) => name)).toEqual(['first', 'write', 'write', 'read', 'comparison', 'comparison'])
  })

  it('gives one owner at most eight ninths of the queue, and all owners that V3 has not accepted a quarter in common', async () => {
    const { clock, rateLimit, log } = start(1, 90)
    for (let call = 0; call < 100; call += 1) ask({ clock, rateLimit, log }, 'flood?', { queueKey: 'a/1?' })
    for (let call = 0; call < 100; call += 1) ask({ clock, rateLimit, log }, 'many', { queueKey: 'a/x' })
    ask({ clock, rateLimit, log }, 'other', { queueKey: 'a/y' })
    await clock.pass(0)
    expect([rateLimit.waiting('write'), log.filter(([name]) => name === 'flood? full').length]).toEqual([
      83, 77,
    ])
    await clock.pass(10_000)
    expect(log.filter(([name]) => name === 'other')).toEqual([['other', 4_200]])
  })

  it('refuses a call that would be too late or finds the queue full', async () => {
    const { clock, rateLimit, log } = start(1, 2)
    ask({ clock, rateLimit, log }, 'now')
    ask({ clock, rateLimit, log }, 'late', { waitMs: 500 })
    ask({ clock, rateLimit, log }, 'next')
    ask({ clock, rateLimit, log }, 'many')
    await clock.pass(600)
    expect(log).toEqual([['now', 0], ['many full', 0], ['late deadline', 500]]) // prettier-ignore
    ask({ clock, rateLimit, log }, 'after')
    await clock.pass(5_000)
    expect(log.slice(3)).toEqual([['next', 1_050], ['after', 2_100]]) // prettier-ignore
  })

  it('removes a waiting call when its caller disconnects', async () => {
    const { clock, rateLimit, log } = start(1)
    const gone = new AbortController()
    ask({ clock, rateLimit, log }, 'now')
    const left = rateLimit.acquire('read', Infinity, shareOf(), gone.signal)
    ask({ clock, rateLimit, log }, 'next')
    await clock.pass(100)
    gone.abort()
    await clock.pass(5_000)
    expect([await left, await rateLimit.acquire('write', Infinity, shareOf(), gone.signal)]).toEqual([
      { admitted: false, waitedMs: 100, reason: 'gone' },
      { admitted: false, waitedMs: 0, reason: 'gone' },
    ])
    expect(log).toEqual([['now', 0], ['next', 1_050]]) // prettier-ignore
  })

  it('pauses all calls for as long as the upstream asked, and keeps the longest of several pauses', async () => {
    const { clock, rateLimit, log } = start(5)
    rateLimit.pauseFor(3_000)
    rateLimit.pauseFor(1_000)
    ask({ clock, rateLimit, log }, 'held')
    await clock.pass(2_999)
    expect(log).toEqual([])
    await clock.pass(1)
    expect(log).toEqual([['held', 3_000]])
  })

  it('is idle when the rate window after the last call is over', async () => {
    const { clock, rateLimit } = start(2)
    expect(rateLimit.isIdle()).toBe(true)
    await rateLimit.acquire('read', 10)
    expect(rateLimit.isIdle()).toBe(false)
    await clock.pass(1_050)
    expect(rateLimit.isIdle()).toBe(true)
  })
})

it('createRateLimit reports the decision on each call and the number of waiting calls', async () => {
  const clock = createManualClock()
  const told: unknown[] = []
  const rateLimit = createRateLimit({
    callsPerSecond: 1,
    clock,
    maxWaiting: 2,
    onAdmission: (priority, admission) => told.push([priority, admission]),
  })
  void rateLimit.acquire('write', Infinity)
  void rateLimit.acquire('read', Infinity)
  void rateLimit.acquire('comparison', 500)
  void rateLimit.acquire('write', Infinity)
  expect(['write', 'read', 'comparison'].map((kind) => rateLimit.waiting(kind as CallPriority))).toEqual([0, 1, 1]) // prettier-ignore
  await clock.pass(2_000)
  expect(rateLimit.waiting('read')).toBe(0)
  expect(told).toEqual([
    ['write', { admitted: true, waitedMs: 0 }],
    ['write', { admitted: false, waitedMs: 0, reason: 'full' }],
    ['comparison', { admitted: false, waitedMs: 500, reason: 'deadline' }],
    ['read', { admitted: true, waitedMs: 1_050 }],
  ])
})

describe('a change of the rate of a rate limit', () => {
  it('allows no additional calls, even after many and large changes of the rate', async () => {
    const steps = fc.array(
      fc.record({ gap: fc.integer({ min: 0, max: 400 }), rate: fc.integer({ min: 1, max: 7 }) }),
      {
        minLength: 1,
        maxLength: 40,
      },
    )
    await fc.assert(
      fc.asyncProperty(steps, async (changes) => {
        const { clock, rateLimit, log } = start(7)
        for (const { gap, rate } of changes) {
          await clock.pass(gap)
          rateLimit.setRate(rate)
          ask({ clock, rateLimit, log }, 'call')
        }
        await clock.pass(100_000)
        const times = log.map(([, atMs]) => atMs)
        expect(times.length).toBe(changes.length)
        for (const [index, atMs] of times.entries()) {
          const before = times[index - 7]
          if (before !== undefined) expect(atMs - before).toBeGreaterThanOrEqual(1_000)
        }
      }),
    )
  })

  it('applies to waiting calls immediately', async () => {
    const { clock, rateLimit, log } = start(1)
    for (const name of ['a', 'b', 'c', 'd']) ask({ clock, rateLimit, log }, name)
    await clock.pass(100)
    rateLimit.setRate(3)
    await clock.pass(0)
    expect(log).toEqual([
      ['a', 0],
      ['b', 100],
      ['c', 100],
    ])
    rateLimit.setRate(1)
    await clock.pass(5_000)
    expect(log.at(-1)).toEqual(['d', 1_150])
  })
})

describe('createRateLimits', () => {
  it('counts the calls before a reload, and applies the new rate after the reload', async () => {
    const clock = createManualClock()
    const rateLimits = createRateLimits(clock)
    const log: [string, number][] = []
    for (const name of ['a', 'b', 'c']) ask({ clock, rateLimit: rateLimits.of('one', 2), log }, name)
    await clock.pass(100)
    rateLimits.forgetRates()
    expect(rateLimits.of('one', 4)).toBe(rateLimits.of('one', 9))
    for (const name of ['d', 'e']) ask({ clock, rateLimit: rateLimits.of('one', 4), log }, name)
    await clock.pass(2_000)
    expect(log).toEqual([
      ['a', 0],
      ['b', 0],
      ['c', 100],
      ['d', 100],
      ['e', 1_050],
    ])
  })

  it('has one limit for each subscription key, with the lower rate if two partners set different rates', async () => {
    const clock = createManualClock()
    const rateLimits = createRateLimits(clock)
    const slow = rateLimits.of('key', 1)
    expect(rateLimits.of('key', 5)).toBe(slow)
    expect(rateLimits.of('other', 1)).not.toBe(slow)
    const log: [string, number][] = []
    for (const name of ['first', 'second']) ask({ clock, rateLimit: rateLimits.of('other', 0.5), log }, name)
    await clock.pass(10_000)
    expect(log).toEqual([['first', 0], ['second', 2_050]]) // prettier-ignore
  })

  it('adds up the waiting calls of all subscription keys, and reports the decisions on all of them', async () => {
    const clock = createManualClock()
    let told = 0
    const rateLimits = createRateLimits(clock, () => (told += 1))
    for (const key of ['a', 'b'])
      for (let call = 0; call < 3; call += 1) void rateLimits.of(key, 1).acquire('read', Infinity)
    expect([rateLimits.waiting('read'), rateLimits.waiting('write'), told]).toEqual([4, 0, 2])
    await clock.pass(5_000)
    expect([rateLimits.waiting('read'), told]).toEqual([0, 6])
  })

  it('drops the limits of idle subscription keys, but never of busy ones, if there are many keys', async () => {
    const clock = createManualClock()
    const rateLimits = createRateLimits(clock)
    const [busy, idle] = [rateLimits.of('busy', 1), rateLimits.of('idle', 1)]
    await busy.acquire('write', 10)
    for (let index = 0; index < 999; index += 1) rateLimits.of(String(index), 1)
    expect(rateLimits.of('busy', 1)).toBe(busy)
    expect(rateLimits.of('idle', 1)).not.toBe(idle)
  })
})
