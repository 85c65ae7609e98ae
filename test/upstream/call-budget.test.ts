import { getEventListeners } from 'node:events'

import { describe, expect, it } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import { type CallBudget, openCallBudget } from '../../src/upstream/call-budget.ts'
import { createRateLimits, type RateLimit, retryWaitMs, soleQueue } from '../../src/upstream/index.ts'
import { createManualClock, type ManualClock } from '../support/manual-clock.ts'

interface Started {
  readonly clock: ManualClock
  readonly rateLimit: RateLimit
  readonly budget: CallBudget
  readonly gone: AbortController
}

/** Opens the budget of a request for reads, with one call per second or without a rate limit. */
function start({ limited = true, budgetMs = 10_000 } = {}): Started {
  const clock = createManualClock()
  const rateLimit = createRateLimits(clock).of('key', 1)
  const gone = new AbortController()
  const budget = openCallBudget({
    rateLimit: limited ? rateLimit : undefined,
    queueKey: soleQueue,
    priority: 'read',
    budgetMs,
    clock,
    signal: () => gone.signal,
  })
  return { clock, rateLimit, budget, gone }
}

/** Returns the time at which the call may be sent, or the code or name of the error. */
async function outcome({ clock }: Started, taken: Promise<number>): Promise<number | string> {
  try {
    await taken
    return clock.nowMs()
  } catch (error) {
    if (error instanceof AdapterError) return error.code
    return error instanceof Error ? error.name : 'strange'
  }
}

describe('openCallBudget', () => {
  it('keeps the calls of a request within the rate limit, and adds up the waits of the calls', async () => {
    const started = start()
    const { clock, budget } = started
    const times = (async () => [
      await outcome(started, budget.take()),
      await outcome(started, budget.take()),
      await outcome(started, budget.take()),
    ])()
    await clock.pass(5_000)
    expect([await times, budget.queuedMs()]).toEqual([[0, 1_050, 2_100], 2_100])
  })

  it('admits every call within the budget immediately if there is no rate limit', async () => {
    const started = start({ limited: false, budgetMs: 100 })
    const { clock, budget } = started
    expect([await outcome(started, budget.take()), budget.queuedMs()]).toEqual([0, 0])
    await clock.pass(100)
    expect(await outcome(started, budget.take())).toBe('ADP_BUDGET_EXCEEDED')
  })

  it('refuses a call that could be sent only after the budget had ended', async () => {
    const started = start({ budgetMs: 500 })
    const { clock, budget } = started
    await budget.take()
    const late = outcome(started, budget.take())
    await clock.pass(500)
    expect(await late).toBe('ADP_BUDGET_EXCEEDED')
  })

  it('refuses a call if a thousand calls of other requests are already waiting', async () => {
    const started = start()
    const { rateLimit, budget } = started
    for (let index = 0; index < 1_001; index += 1) void rateLimit.acquire('write', Infinity)
    expect(await outcome(started, budget.take())).toBe('ADP_OVERLOADED')
  })

  it('removes the waiting call from the queue when the client disconnects', async () => {
    const started = start()
    const { clock, rateLimit, budget, gone } = started
    await budget.take()
    const left = outcome(started, budget.take())
    const next = rateLimit.acquire('read', Infinity)
    await clock.pass(10)
    gone.abort()
    expect(await left).toBe('AbortError')
    expect(await outcome(started, budget.take())).toBe('AbortError')
    await clock.pass(2_000)
    expect(await next).toEqual({ admitted: true, waitedMs: 1_050 })
  })

  it('pauses only this request after a 503, but all requests with the subscription key after a 429', async () => {
    const { clock, rateLimit, budget } = start()
    const paused = budget.pause(3_000, false).then((result) => [result, clock.nowMs()])
    const other = rateLimit.acquire('write', Infinity)
    await clock.pass(5_000)
    expect([await paused, await other]).toEqual([[true, 3_000], { admitted: true, waitedMs: 0 }])
    expect(await budget.pause(2_000, true)).toBe(true)
    const held = rateLimit.acquire('write', Infinity)
    await clock.pass(5_000)
    expect(await held).toEqual({ admitted: true, waitedMs: 2_000 })
  })

  it('pauses this request after a 429 even if the subscription key has no rate limit', async () => {
    const { clock, budget } = start({ limited: false })
    const paused = budget.pause(3_000, true).then((result) => [result, clock.nowMs()])
    await clock.pass(5_000)
    expect(await paused).toEqual([true, 3_000])
  })

  it('refuses a pause that is longer than the rest of the budget', async () => {
    const { clock, rateLimit, budget } = start({ budgetMs: 1_000 })
    expect([await budget.pause(1_000, false), await budget.pause(60_000, true)]).toEqual([false, false])
    const held = rateLimit.acquire('write', Infinity)
    await clock.pass(60_000)
    expect(await held).toEqual({ admitted: true, waitedMs: 1_000 })
  })

  it('leaves no listener on the signal of the request after a pause', async () => {
    const { clock, budget, gone } = start()
    const paused = budget.pause(3_000, false)
    await clock.pass(3_000)
    expect(await paused).toBe(true)
    expect(getEventListeners(gone.signal, 'abort')).toEqual([])
  })

  it('ends a pause when the client disconnects', async () => {
    const started = start()
    const { budget, gone } = started
    const paused = budget.pause(5_000, false)
    gone.abort()
    expect(await paused).toBe(true)
    expect(await outcome(started, budget.take())).toBe('AbortError')
  })
})

const waits: [reason: string, retryAfterMs: number | undefined, expected: (number | undefined)[]][] = [
  ['throttled', undefined, [2_000, 4_000, 8_000, 16_000]],
  ['throttled', 1_000, [1_000, 4_000, 8_000, 16_000]],
  ['throttled', 9_000, [9_000, 9_000, 9_000, 16_000]],
  ['unavailable', 3_000, [3_000, 4_000, 8_000, 16_000]],
  ['unavailable', undefined, [2_000, 4_000, 8_000, 16_000]],
  ['notConnected', undefined, [250, 1_000, undefined]],
  ['budget', undefined, [undefined]],
  ['queueFull', undefined, [undefined]],
  ['redirected', undefined, [undefined]],
  ['stopped', undefined, [undefined]],
]

describe('retryWaitMs', () => {
  it.each(waits)(
    'returns, for the outcome %s with Retry-After %j, the waits %j before successive attempts (service-facts 9)',
    (reason, retryAfterMs, expected) => {
      expect(expected.map((_, attempt) => retryWaitMs({ reason, retryAfterMs }, attempt))).toEqual(expected)
    },
  )

  it('returns a wait of at most one hour', () => {
    expect(retryWaitMs({ reason: 'throttled', retryAfterMs: undefined }, 40)).toBe(3_600_000)
  })
})
