import { describe, expect, it } from 'vitest'

import { createPace } from '../../../src/compare/live/pace.ts'
import { createRateLimit } from '../../../src/upstream/index.ts'
import { partner } from '../../partners/partner.ts'
import { createManualClock } from '../../support/manual-clock.ts'

const SILENCE_MS = 300_000
const acme = (callsPerSecond?: number) => ({ ...partner('acme', { any: true }), callsPerSecond })
const never = new AbortController().signal

describe('createPace', () => {
  it('allows no comparison call to a service for five minutes after its 429, and delays no call of a client', async () => {
    const clock = createManualClock()
    const pace = createPace(clock, never)
    const shared = createRateLimit({ callsPerSecond: 5, clock })
    const ask = () => pace.acquire(acme(5), 'v3', 60_000, shared)
    expect(await ask()).toBeUndefined()
    pace.onThrottled(acme(5), 'v3')
    expect(pace.silent()).toMatchObject([{ partner: 'acme', side: 'v3' }])
    expect(await ask()).toBe('silence')
    expect(await pace.acquire(acme(5), 'v2', 60_000, undefined)).toBeUndefined()
    // A call of a client is admitted immediately.
    expect(await shared.acquire('write', 1)).toEqual({ admitted: true, waitedMs: 0 })
    await clock.pass(SILENCE_MS)
    expect([await ask(), pace.silent()]).toEqual([undefined, []])
  })

  it('allows no call after the adapter has begun to stop', async () => {
    const pace = createPace(createManualClock(), AbortSignal.abort())
    expect(await pace.acquire(acme(5), 'v3', 60_000, undefined)).toBe('pace')
  })
})
