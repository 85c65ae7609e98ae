import { describe, expect, it } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import { openTurns, type Turns } from '../../src/proxy/turns.ts'
import { createThrottles, soleShare, type Throttle } from '../../src/v3/index.ts'
import { createManualClock, type ManualClock } from '../support/manual-clock.ts'

interface Started {
  readonly clock: ManualClock
  readonly throttle: Throttle
  readonly turns: Turns
  readonly gone: AbortController
}

/** The turns of a read at one call a second, or at any pace. */
function start({ paced = true, budgetMs = 10_000 } = {}): Started {
  const clock = createManualClock()
  const throttle = createThrottles(clock).of('key', 1)
  const gone = new AbortController()
  const pace = paced ? { throttle } : undefined
  const turns = openTurns({ pace, share: soleShare, priority: 'read', budgetMs, clock, signal: gone.signal })
  return { clock, throttle, turns, gone }
}

/** What became of a turn: the time at which the call may leave, or the code or name of the refusal. */
async function outcome({ clock }: Started, turn: Promise<void>): Promise<number | string> {
  try {
    await turn
    return clock.nowMs()
  } catch (error) {
    if (error instanceof AdapterError) return error.code
    return error instanceof Error ? error.name : 'strange'
  }
}

describe('openTurns', () => {
  it('holds the calls of a request to the pace of the key, and adds up what they waited', async () => {
    const started = start()
    const { clock, turns } = started
    const times = (async () => [
      await outcome(started, turns.take()),
      await outcome(started, turns.take()),
      await outcome(started, turns.take()),
    ])()
    await clock.pass(5_000)
    expect([await times, turns.queuedMs()]).toEqual([[0, 1_050, 2_100], 2_100])
  })

  it('lets a call of a partner without a pace leave at once, as long as the budget lasts', async () => {
    const started = start({ paced: false, budgetMs: 100 })
    const { clock, turns } = started
    expect([await outcome(started, turns.take()), turns.queuedMs()]).toEqual([0, 0])
    await clock.pass(100)
    expect(await outcome(started, turns.take())).toBe('ADP_BUDGET_EXCEEDED')
  })

  it('refuses a call whose turn would come after the budget', async () => {
    const started = start({ budgetMs: 500 })
    const { clock, turns } = started
    await turns.take()
    const late = outcome(started, turns.take())
    await clock.pass(500)
    expect(await late).toBe('ADP_BUDGET_EXCEEDED')
  })

  it('refuses a call when a thousand others wait', async () => {
    const started = start()
    const { throttle, turns } = started
    for (let index = 0; index < 1_001; index += 1) void throttle.acquire('write', Infinity)
    expect(await outcome(started, turns.take())).toBe('ADP_OVERLOADED')
  })

  it('ends, and leaves its place to others, when the client goes away', async () => {
    const started = start()
    const { clock, throttle, turns, gone } = started
    await turns.take()
    const left = outcome(started, turns.take())
    const next = throttle.acquire('read', Infinity)
    await clock.pass(10)
    gone.abort()
    expect(await left).toBe('AbortError')
    expect(await outcome(started, turns.take())).toBe('AbortError')
    await clock.pass(2_000)
    expect(await next).toEqual({ admitted: true, waitedMs: 1_050 })
  })

  it('pauses on its own after a 503, and holds the whole key back after a 429', async () => {
    const { clock, throttle, turns } = start()
    const paused = turns.pause(3_000, false).then((result) => [result, clock.nowMs()])
    const other = throttle.acquire('write', Infinity)
    await clock.pass(5_000)
    expect([await paused, await other]).toEqual([[true, 3_000], { admitted: true, waitedMs: 0 }])
    expect(await turns.pause(2_000, true)).toBe(true)
    const held = throttle.acquire('write', Infinity)
    await clock.pass(5_000)
    expect(await held).toEqual({ admitted: true, waitedMs: 2_000 })
  })

  it('pauses on its own after a 429 where nothing paces the key', async () => {
    const { clock, turns } = start({ paced: false })
    const paused = turns.pause(3_000, true).then((result) => [result, clock.nowMs()])
    await clock.pass(5_000)
    expect(await paused).toEqual([true, 3_000])
  })

  it('does not pause beyond the budget, for which it holds the key back', async () => {
    const { clock, throttle, turns } = start({ budgetMs: 1_000 })
    expect([await turns.pause(1_000, false), await turns.pause(60_000, true)]).toEqual([false, false])
    const held = throttle.acquire('write', Infinity)
    await clock.pass(60_000)
    expect(await held).toEqual({ admitted: true, waitedMs: 1_000 })
  })

  it('wakes from a pause when the client goes away', async () => {
    const started = start()
    const { turns, gone } = started
    const paused = turns.pause(5_000, false)
    gone.abort()
    expect(await paused).toBe(true)
    expect(await outcome(started, turns.take())).toBe('AbortError')
  })
})
