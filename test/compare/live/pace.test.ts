import { describe, expect, it } from 'vitest'

import { createPace, type Pace } from '../../../src/compare/live/pace.ts'
import { createRateLimit } from '../../../src/upstream/index.ts'
import { partner } from '../../partners/partner.ts'
import { createManualClock } from '../../support/manual-clock.ts'

const SILENCE_MS = 300_000
const acme = (callsPerSecond?: number) => ({ ...partner('acme', { any: true }), callsPerSecond })
const never = new AbortController().signal

/** Calls that leave within a time, of one that is wanted after another. */
async function callsWithin(
  pace: Pace,
  callsPerSecond: number,
  ms: number,
  clock: ReturnType<typeof createManualClock>,
) {
  const endMs = clock.nowMs() + ms
  let left = 0
  const call = async (): Promise<void> => {
    for (let atMs = clock.nowMs(); atMs < endMs; atMs = clock.nowMs()) {
      expect(await pace.acquire(acme(callsPerSecond), 'v3', 60_000, undefined)).toBeUndefined()
      left += 1
    }
  }
  void call()
  for (let passedMs = 0; passedMs < ms - 1; passedMs += 25) await clock.pass(Math.min(25, ms - 1 - passedMs))
  return left
}

describe('the pace of comparisons', () => {
  it('is a fifth of the calls that the partner may make', async () => {
    for (const [callsPerSecond, expected] of [
      [5, 10],
      [25, 50],
    ] as const) {
      const clock = createManualClock()
      const calls = await callsWithin(createPace(clock, never), callsPerSecond, 10_000, clock)
      expect(calls).toBeGreaterThan(expected * 0.8)
      expect(calls).toBeLessThanOrEqual(expected)
    }
  })

  it('leaves a side alone for five minutes after a 429, and pauses no call of a client', async () => {
    const clock = createManualClock()
    const pace = createPace(clock, never)
    const shared = createRateLimit({ callsPerSecond: 5, clock })
    const ask = () => pace.acquire(acme(5), 'v3', 60_000, shared)
    expect(await ask()).toBeUndefined()
    pace.throttled(acme(5), 'v3')
    expect(pace.silent()).toMatchObject([{ partner: 'acme', side: 'v3' }])
    expect(await ask()).toBe('silence')
    expect(await pace.acquire(acme(5), 'v2', 60_000, undefined)).toBeUndefined()
    // A client's call leaves at once.
    expect(await shared.acquire('write', 1)).toEqual({ admitted: true, waitedMs: 0 })
    await clock.pass(SILENCE_MS)
    expect([await ask(), pace.silent()]).toEqual([undefined, []])
  })

  it('is silent after a 429 to a client as well', async () => {
    const clock = createManualClock()
    const shared = createRateLimit({ callsPerSecond: 5, clock })
    shared.pauseFor(100)
    const pace = createPace(clock, never)
    expect(await pace.acquire(acme(5), 'v3', 60_000, shared)).toBe('silence')
    expect(pace.silent()).toHaveLength(1)
  })

  it('sends nothing once the adapter stops', async () => {
    const pace = createPace(createManualClock(), AbortSignal.abort())
    expect(await pace.acquire(acme(5), 'v3', 60_000, undefined)).toBe('pace')
  })
})
