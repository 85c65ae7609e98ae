import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import type { Share } from '../../../src/v3/client/shares/share.ts'
import { type CallPriority } from '../../../src/v3/client/waiting-line.ts'
import { createThrottle, type Throttle } from '../../../src/v3/client/throttle.ts'
import { createThrottles } from '../../../src/v3/client/throttles.ts'
import { createManualClock, type ManualClock } from '../../support/manual-clock.ts'

/** The share of an owner `partner` or `partner/owner`; with `?` at the end it is a newcomer. */
function shareOf(owner = 'a'): Share {
  return { partner: owner.charAt(0), owner, isAccepted: () => !owner.endsWith('?') }
}

/** Asks for a call and writes down when it left, or why it did not. */
function ask(
  throttle: Throttle,
  log: [name: string, atMs: number][],
  name: string,
  {
    priority = 'write',
    share,
    deadlineMs = Infinity,
  }: { priority?: CallPriority; share?: string; deadlineMs?: number } = {},
): void {
  void throttle
    .acquire(priority, deadlineMs, shareOf(share))
    .then((admission) =>
      log.push([admission.admitted ? name : `${name} ${admission.reason}`, throttle.nowMs()]),
    )
}

function start(
  callsPerSecond: number,
  maxWaiting?: number,
): { clock: ManualClock; throttle: Throttle; log: [string, number][] } {
  const clock = createManualClock()
  const limit = maxWaiting === undefined ? {} : { maxWaiting }
  return { clock, throttle: createThrottle({ callsPerSecond, clock, ...limit }), log: [] }
}

describe('createThrottle', () => {
  it('service-facts 9: never lets more calls out in any second than allowed, and none waits without need', async () => {
    const arrivals = fc.array(fc.integer({ min: 0, max: 700 }), { minLength: 1, maxLength: 40 })
    await fc.assert(
      fc.asyncProperty(arrivals, fc.integer({ min: 1, max: 7 }), async (gaps, rate) => {
        const { clock, throttle, log } = start(rate)
        for (const gap of gaps) {
          await clock.pass(gap)
          ask(throttle, log, 'call')
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

  it('sends a class of 30 at 5 calls a second in less than 6 seconds', async () => {
    const { clock, throttle, log } = start(5)
    for (let index = 0; index < 30; index += 1) ask(throttle, log, String(index))
    expect(throttle.estimateMs(1)).toBe(5_250 + 1_050)
    await clock.pass(10_000)
    expect(log.map(([name]) => Number(name))).toEqual(Array.from({ length: 30 }, (_, index) => index))
    expect(log.at(-1)?.[1]).toBe(5_250)
  })

  it('takes a rate below one call a second', async () => {
    const { clock, throttle, log } = start(0.5)
    for (const name of ['a', 'b', 'c']) ask(throttle, log, name)
    await clock.pass(10_000)
    expect(log).toEqual([['a', 0], ['b', 2_050], ['c', 4_100]]) // prettier-ignore
  })

  it('lets writes out before reads, and reads before comparison', async () => {
    const { clock, throttle, log } = start(1)
    ask(throttle, log, 'first')
    for (const priority of ['comparison', 'read', 'write', 'comparison', 'write'] as const)
      ask(throttle, log, priority, { priority })
    await clock.pass(10_000)
    expect(log.map(([name]) => name)).toEqual(['first', 'write', 'write', 'read', 'comparison', 'comparison'])
  })

  it('lets partners take turns, whatever one of them has in the queue', async () => {
    const { clock, throttle, log } = start(1)
    for (const share of ['a', 'a', 'a', 'a', 'b', 'b', 'c']) ask(throttle, log, share, { share })
    await clock.pass(10_000)
    expect(log.map(([name]) => name).join('')).toBe('aabcaba')
  })

  it('lets the owners of a partner take turns, and all newcomers have one together', async () => {
    const { clock, throttle, log } = start(1)
    const shares = ['a', 'a/x', 'a/x', 'a/x', 'a/y', 'b', 'a/1?', 'a/2?', 'a/3?']
    for (const share of shares) ask(throttle, log, share, { share })
    await clock.pass(10_000)
    expect(log.map(([name]) => name)).toEqual(['a', 'a/x', 'b', 'a/1?', 'a/y', 'a/2?', 'a/x', 'a/3?', 'a/x'])
  })

  it('keeps places in the line for other owners: one alone has eight ninths, newcomers a quarter', async () => {
    const { clock, throttle, log } = start(1, 90)
    for (let call = 0; call < 100; call += 1) ask(throttle, log, 'flood?', { share: 'a/1?' })
    for (let call = 0; call < 100; call += 1) ask(throttle, log, 'many', { share: 'a/x' })
    ask(throttle, log, 'other', { share: 'a/y' })
    await clock.pass(0)
    expect([throttle.waiting('write'), log.filter(([name]) => name === 'flood? full').length]).toEqual([
      83, 77,
    ])
    await clock.pass(10_000)
    expect(log.filter(([name]) => name === 'other')).toEqual([['other', 4_200]])
  })

  it('turns away what would leave too late, or what is one too many, and gives its place to others', async () => {
    const { clock, throttle, log } = start(1, 2)
    ask(throttle, log, 'now')
    ask(throttle, log, 'late', { deadlineMs: 500 })
    ask(throttle, log, 'next')
    ask(throttle, log, 'many')
    await clock.pass(600)
    expect(log).toEqual([['now', 0], ['many full', 0], ['late deadline', 500]]) // prettier-ignore
    ask(throttle, log, 'after')
    await clock.pass(5_000)
    expect(log.slice(3)).toEqual([['next', 1_050], ['after', 2_100]]) // prettier-ignore
  })

  it('takes who has given up out of the line, and does not let in who had given up before', async () => {
    const { clock, throttle, log } = start(1)
    const gone = new AbortController()
    ask(throttle, log, 'now')
    const left = throttle.acquire('read', Infinity, shareOf(), gone.signal)
    ask(throttle, log, 'next')
    await clock.pass(100)
    gone.abort()
    await clock.pass(5_000)
    expect([await left, await throttle.acquire('write', Infinity, shareOf(), gone.signal)]).toEqual([
      { admitted: false, waitedMs: 100, reason: 'gone' },
      { admitted: false, waitedMs: 0, reason: 'gone' },
    ])
    expect(log).toEqual([['now', 0], ['next', 1_050]]) // prettier-ignore
  })

  it('holds everything back as long as the upstream asked, and the longest hold counts', async () => {
    const { clock, throttle, log } = start(5)
    throttle.penalise(3_000)
    throttle.penalise(1_000)
    ask(throttle, log, 'held')
    expect(throttle.estimateMs(1)).toBe(3_000)
    await clock.pass(2_999)
    expect(log).toEqual([])
    await clock.pass(1)
    expect(log).toEqual([['held', 3_000]])
  })

  it('is idle when the last call is a window ago', async () => {
    const { clock, throttle } = start(2)
    expect([throttle.isIdle(), throttle.estimateMs(0), throttle.estimateMs(2), throttle.estimateMs(5)]).toEqual([true, 0, 0, 2_100]) // prettier-ignore
    await throttle.acquire('read', 10)
    expect(throttle.isIdle()).toBe(false)
    await clock.pass(1_050)
    expect(throttle.isIdle()).toBe(true)
  })
})

it('tells what became of each call that asked, and how many wait', async () => {
  const clock = createManualClock()
  const told: unknown[] = []
  const throttle = createThrottle({
    callsPerSecond: 1,
    clock,
    maxWaiting: 2,
    onAdmission: (priority, admission) => told.push([priority, admission]),
  })
  void throttle.acquire('write', Infinity)
  void throttle.acquire('read', Infinity)
  void throttle.acquire('comparison', 500)
  void throttle.acquire('write', Infinity)
  expect(['write', 'read', 'comparison'].map((kind) => throttle.waiting(kind as CallPriority))).toEqual([0, 1, 1]) // prettier-ignore
  await clock.pass(2_000)
  expect(throttle.waiting('read')).toBe(0)
  expect(told).toEqual([
    ['write', { admitted: true, waitedMs: 0 }],
    ['write', { admitted: false, waitedMs: 0, reason: 'full' }],
    ['comparison', { admitted: false, waitedMs: 500, reason: 'deadline' }],
    ['read', { admitted: true, waitedMs: 1_050 }],
  ])
})

describe('createThrottles', () => {
  it('has one throttle for each key, and the lower rate counts', async () => {
    const clock = createManualClock()
    const throttles = createThrottles(clock)
    const slow = throttles.of('key', 1)
    expect(throttles.of('key', 5)).toBe(slow)
    expect(throttles.of('other', 1)).not.toBe(slow)
    expect(throttles.of('other', 0.5).estimateMs(2)).toBe(2_050)
  })

  it('counts what waits over all keys, and tells of the calls of all', async () => {
    const clock = createManualClock()
    let told = 0
    const throttles = createThrottles(clock, () => (told += 1))
    for (const key of ['a', 'b'])
      for (let call = 0; call < 3; call += 1) void throttles.of(key, 1).acquire('read', Infinity)
    expect([throttles.waiting('read'), throttles.waiting('write'), told]).toEqual([4, 0, 2])
    await clock.pass(5_000)
    expect([throttles.waiting('read'), told]).toEqual([0, 6])
  })

  it('forgets idle keys when there are many, and no busy one', async () => {
    const clock = createManualClock()
    const throttles = createThrottles(clock)
    const [busy, idle] = [throttles.of('busy', 1), throttles.of('idle', 1)]
    await busy.acquire('write', 10)
    for (let index = 0; index < 999; index += 1) throttles.of(String(index), 1)
    expect(throttles.of('busy', 1)).toBe(busy)
    expect(throttles.of('idle', 1)).not.toBe(idle)
  })
})
