import { describe, expect, it } from 'vitest'

import {
  type CountedTrial,
  createTrialWindows,
  type Trial,
  type TrialResult,
  type TrialStart,
} from '../../../src/rollout/guards/trial-windows.ts'

interface Windows {
  begin(write: Omit<TrialStart, 'records'> & { records?: number }): Trial | undefined
  close(nowMs: number): readonly (readonly CountedTrial[])[]
}

function create(): Windows {
  const windows = createTrialWindows()
  return { begin: (write) => windows.begin({ records: 1, ...write }), close: (nowMs) => windows.close(nowMs) }
}
const good: TrialResult = { outcome: 'good' }
const bad: TrialResult = { outcome: 'unknown' }

describe('createTrialWindows', () => {
  it('counts only the first write of a unit in each window, whatever its outcome', () => {
    const windows = create()
    windows.begin({ unit: 'a', side: 'v3', receivedMs: 100 })?.end(good)
    expect(windows.begin({ unit: 'a', side: 'v3', receivedMs: 200 })).toBeUndefined()
    windows.begin({ unit: 'b', side: 'v2', receivedMs: 300 })?.end(bad)
    windows.begin({ unit: 'a', side: 'v3', receivedMs: 10_100 })?.end(bad)
    expect(windows.close(20_000)).toEqual([
      [
        { side: 'v3', stratum: 0, outcome: 'good' },
        { side: 'v2', stratum: 0, outcome: 'unknown' },
      ],
      [{ side: 'v3', stratum: 0, outcome: 'unknown' }],
    ])
  })

  it('closes windows in order, and each window only after its trials have ended', () => {
    const windows = create()
    const slow = windows.begin({ unit: 'a', side: 'v2', receivedMs: 9_000 })
    windows.begin({ unit: 'b', side: 'v3', receivedMs: 11_000 })?.end(bad)
    expect(windows.close(50_000)).toEqual([])
    slow?.end(bad)
    expect(windows.close(50_000).map((trials) => trials.map(({ side }) => side))).toEqual([['v2'], ['v3']])
  })

  it('counts a trial as unknown if it has not ended after three minutes, and ignores its later end', () => {
    const windows = create()
    const hanging = windows.begin({ unit: 'a', side: 'v3', receivedMs: 9_000 })
    expect(windows.close(189_999)).toEqual([])
    expect(windows.close(190_000)).toEqual([[{ side: 'v3', stratum: 0, outcome: 'unknown' }]])
    hanging?.end(good)
    expect(windows.close(999_999)).toEqual([])
  })

  it('counts the next write of a unit if the first write was dropped', () => {
    const windows = create()
    const first = windows.begin({ unit: 'a', side: 'v3', receivedMs: 1 })
    first?.drop()
    windows.begin({ unit: 'a', side: 'v3', receivedMs: 2 })?.end(bad)
    first?.end(good)
    for (let unit = 1; unit < 5_000; unit++)
      windows.begin({ unit: `${unit}`, side: 'v3', receivedMs: 1, records: 30 })?.end(good)
    expect(windows.begin({ unit: 'c', side: 'v3', receivedMs: 1 })).toBeUndefined()
    const [trials = []] = windows.close(10_000)
    expect(trials).toHaveLength(5_000)
    expect(trials.slice(0, 2)).toEqual([
      { side: 'v3', stratum: 0, outcome: 'unknown' },
      { side: 'v3', stratum: 2, outcome: 'good' },
    ])
  })

  it('adds a write to the latest window if the clock was set back', () => {
    const windows = create()
    windows.begin({ unit: 'a', side: 'v3', receivedMs: 25_000 })?.end(good)
    windows.begin({ unit: 'b', side: 'v2', receivedMs: 5_000 })?.end(good)
    expect(windows.close(29_999)).toEqual([])
    expect(windows.close(30_000).map((trials) => trials.length)).toEqual([2])
  })

  it('judges whether a write on V3 is slow by V2 writes of similar size in earlier windows', () => {
    const windows = create()
    const fill = (startMs: number, side: 'v2' | 'v3', latencyMs: number): void => {
      for (let unit = 0; unit < 60; unit++) {
        windows.begin({ unit: `${side}${unit}`, side, receivedMs: startMs })?.end({ ...good, latencyMs })
      }
    }
    const slowOnV3 = (nowMs: number): unknown =>
      windows
        .close(nowMs)
        .flat()
        .find(({ side }) => side === 'v3')?.outcome
    fill(0, 'v2', 1_500)
    fill(0, 'v3', 90_000)
    expect(slowOnV3(10_000)).toBe('good')
    fill(10_000, 'v2', 1_500)
    fill(10_000, 'v3', 4_000)
    expect(slowOnV3(20_000)).toBe('good')
    fill(20_000, 'v2', 1_500)
    fill(20_000, 'v3', 6_000)
    expect(slowOnV3(30_000)).toBe('slow')
    // There is no threshold for writes of this size, because V2 has served no write of this size.
    windows
      .begin({ unit: 'big', side: 'v3', receivedMs: 30_000, records: 500 })
      ?.end({ ...good, latencyMs: 90_000 })
    expect(slowOnV3(40_000)).toBe('good')
  })
})
