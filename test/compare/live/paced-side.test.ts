import { describe, expect, it } from 'vitest'

import { createPacedSides, type PacedSide, SILENCE_MS } from '../../../src/compare/live/paced-side.ts'
import { createRateLimit } from '../../../src/upstream/index.ts'
import { partner } from '../../partners/partner.ts'
import { createManualClock } from '../../support/manual-clock.ts'

const acme = (callsPerSecond?: number) => ({ ...partner('acme', { any: true }), callsPerSecond })

/** Calls that leave within a time, of one that is wanted after another. */
async function callsWithin(paced: PacedSide, ms: number, clock: ReturnType<typeof createManualClock>) {
  const endMs = clock.nowMs() + ms
  let left = 0
  const call = async (): Promise<void> => {
    for (let atMs = clock.nowMs(); atMs < endMs; atMs = clock.nowMs()) {
      await paced.open(60_000, undefined).take()
      left += 1
    }
  }
  void call().catch(() => undefined)
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
      const paced = createPacedSides(clock, new AbortController().signal).of(acme(callsPerSecond), 'v3')
      const calls = await callsWithin(paced, 10_000, clock)
      expect(calls).toBeGreaterThan(expected * 0.8)
      expect(calls).toBeLessThanOrEqual(expected)
    }
  })

  it('leaves a side alone for five minutes after a 429, and pauses no call of a client', async () => {
    const clock = createManualClock()
    const silences: [string, string, number][] = []
    const sides = createPacedSides(clock, new AbortController().signal, undefined, (...one) =>
      silences.push(one),
    )
    const shared = createRateLimit({ callsPerSecond: 5, clock })
    const paced = sides.of(acme(5), 'v3')
    const budget = paced.open(60_000, shared)
    await budget.take()
    expect(await budget.pause(90_000, true)).toBe(false)
    expect([paced.isSilent(), silences]).toEqual([true, [['acme', 'v3', SILENCE_MS]]])
    await expect(paced.open(60_000, shared).take()).rejects.toThrow('Nothing was sent')
    expect(sides.of(acme(5), 'v2').isSilent()).toBe(false)
    // A client's call leaves at once.
    expect(await shared.acquire('write', clock.nowMs() + 1)).toEqual({ admitted: true, waitedMs: 0 })
    await clock.pass(SILENCE_MS)
    await paced.open(60_000, shared).take()
    expect(paced.isSilent()).toBe(false)
  })

  it('is silent after a 429 to a client as well', async () => {
    const clock = createManualClock()
    const shared = createRateLimit({ callsPerSecond: 5, clock })
    shared.pauseFor(100)
    const paced = createPacedSides(clock, new AbortController().signal).of(acme(5), 'v3')
    await expect(paced.open(60_000, shared).take()).rejects.toThrow('Nothing was sent')
    expect(paced.isSilent()).toBe(true)
  })

  it('sends nothing once the adapter stops', async () => {
    const stop = new AbortController()
    const paced = createPacedSides(createManualClock(), stop.signal).of(acme(5), 'v3')
    stop.abort()
    await expect(paced.open(60_000, undefined).take()).rejects.toThrow('Nothing was sent')
  })
})
