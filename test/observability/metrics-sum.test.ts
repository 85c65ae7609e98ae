import { expect, test } from 'vitest'

import { createEvents } from '../../src/observability/events.ts'
import { createLogger } from '../../src/observability/logger.ts'
import { createMetrics, type MetricsSnapshot } from '../../src/observability/metrics.ts'
import { createMetricsSum, type MetricsSum } from '../../src/observability/metrics-sum.ts'

/** What a process shows after so many calls to V3 and unforeseen errors, with 30 records in the journal that all share. */
async function show({ calls, errors }: { calls: number; errors: number }): Promise<MetricsSnapshot> {
  const metrics = createMetrics()
  const events = createEvents(createLogger('silent'), metrics.instruments)
  for (let n = 0; n < calls; n += 1) metrics.called({ kind: 'write', status: 201, durationMs: 20 })
  for (let n = 0; n < errors; n += 1) events.internalError({ errorName: 'Error', stack: [] })
  metrics.addGauge('under_way', 'Now.', () => calls)
  metrics.addGauge('kept', 'In the journal.', () => 30, { shared: true })
  // As it comes through the channel between processes.
  return structuredClone(await metrics.snapshot())
}

async function totals(sum: MetricsSum): Promise<Record<string, number | undefined>> {
  const { text } = await sum.render()
  const read = (name: string): number | undefined => {
    const line = text.split('\n').find((each) => each.startsWith(`markbridge_${name} `))
    return line === undefined ? undefined : Number(line.split(' ').at(-1))
  }
  return {
    workers: read('workers'),
    ends: read('worker_ends_total'),
    calls: read('v3_call_duration_seconds_count{kind="write",status="2xx"}'),
    errors: read('internal_errors_total'),
    underWay: read('under_way'),
    kept: read('kept'),
  }
}

test('processes count together, and what one has counted outlives it', async () => {
  const sum = createMetricsSum(Date.now)
  for (const worker of [1, 2]) sum.started(worker)
  sum.shown(1, await show({ calls: 3, errors: 1 }))
  sum.shown(2, await show({ calls: 4, errors: 0 }))
  expect(await totals(sum)).toEqual({ workers: 2, ends: 0, calls: 7, errors: 1, underWay: 7, kept: 30 })
  sum.ended(1)
  sum.started(3)
  expect(await totals(sum)).toEqual({ workers: 2, ends: 1, calls: 7, errors: 1, underWay: 4, kept: 30 })
  sum.shown(3, await show({ calls: 1, errors: 1 }))
  sum.ended(2)
  // Its answer was under way when it ended.
  sum.shown(2, await show({ calls: 9, errors: 9 }))
  expect(await totals(sum)).toEqual({ workers: 1, ends: 2, calls: 8, errors: 2, underWay: 1, kept: 30 })
  const { contentType, text } = await sum.render()
  expect(contentType).toMatch(/^text\/plain; version=0\.0\.4/)
  expect(new Set(text.match(/^# TYPE \S+/gm)).size).toBe(text.match(/^# TYPE \S+/gm)?.length)
})
