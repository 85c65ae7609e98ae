import { describe, expect, it } from 'vitest'

import { retryWaitMs } from '../../src/upstream/index.ts'

const rows: [reason: string, retryAfterMs: number | undefined, waits: (number | undefined)[]][] = [
  ['throttled', undefined, [2_000, 4_000, 8_000, 16_000]],
  ['throttled', 1_000, [1_000, 4_000, 8_000, 16_000]],
  ['throttled', 9_000, [9_000, 9_000, 9_000, 16_000]],
  ['unavailable', 3_000, [3_000, 4_000, 8_000, 16_000]],
  ['unavailable', undefined, [undefined, undefined]],
  ['notConnected', undefined, [250, 1_000, undefined]],
  ['budget', undefined, [undefined]],
  ['queueFull', undefined, [undefined]],
  ['redirected', undefined, [undefined]],
  ['stopped', undefined, [undefined]],
]

describe('retryWaitMs', () => {
  it.each(rows)('service-facts 9: after %s with %j waits %j', (reason, retryAfterMs, waits) => {
    expect(waits.map((_, attempt) => retryWaitMs({ reason, retryAfterMs }, attempt))).toEqual(waits)
  })

  it('waits an hour at the most', () => {
    expect(retryWaitMs({ reason: 'throttled', retryAfterMs: undefined }, 40)).toBe(3_600_000)
  })
})
