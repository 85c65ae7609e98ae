import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { expect, it } from 'vitest'

import { formatMetrics } from '../../src/observability/format-metrics.ts'

/** Lines with the labels of each in their order. */
const linesOf = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.replace(/\{(.*)\}/, (_, labels: string) => `{${labels.split(',').sort().join()}}`))

it('formats metrics as prom-client does', async () => {
  const registry = new Registry()
  const registers = [registry]
  const counter = new Counter({ name: 'a_total', help: 'With \\ and\nlines', labelNames: ['of', 'to'], registers }) // prettier-ignore
  counter.inc({ of: 'a "quoted" \\ text\n', to: '' }, 3)
  counter.inc({ of: 'b', to: 'c' }, 0.5)
  new Counter({ name: 'none_total', help: 'Nothing yet', labelNames: ['of'], registers })
  for (const [name, value] of [['up', Infinity], ['down', -Infinity], ['large', 1e21]] as const)
    new Gauge({ name, help: name, registers }).set(value) // prettier-ignore
  const histogram = new Histogram({ name: 'h', help: 'Times', labelNames: ['kind'], buckets: [0.1, 1], registers }) // prettier-ignore
  histogram.observe({ kind: 'x' }, 0.5)
  expect(linesOf(await formatMetrics(await registry.getMetricsAsJSON()))).toEqual(
    linesOf(await registry.metrics()),
  )
})

it('lets others have a turn between some thousands of series', async () => {
  const registry = new Registry()
  const counter = new Counter({ name: 'a_total', help: 'a', labelNames: ['of'], registers: [registry] })
  for (let of = 0; of < 20_000; of += 1) counter.inc({ of: String(of) })
  const metrics = await registry.getMetricsAsJSON()
  let turns = 0
  let isDone = false
  const count = (): void => {
    turns += 1
    if (!isDone) setImmediate(count)
  }
  setImmediate(count)
  await formatMetrics(metrics)
  isDone = true
  expect(turns).toBeGreaterThanOrEqual(9)
})
