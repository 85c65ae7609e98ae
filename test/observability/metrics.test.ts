import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { describe, expect, it } from 'vitest'

import { createEvents } from '../../src/observability/events.ts'
import { createLogger } from '../../src/observability/logger.ts'
import {
  createMetrics,
  createMetricsSum,
  formatMetrics,
  type Metrics,
  type MetricsSnapshot,
  type MetricsSum,
} from '../../src/observability/metrics.ts'

/** Returns the adapter's own samples that are not 0, without the buckets of histograms. */
async function samples(metrics: Metrics): Promise<string[]> {
  const { text } = await metrics.render()
  const lines = text.split('\n').filter((line) => /^markbridge_(?!.*_bucket\{)/.test(line))
  return lines.filter((line) => !line.endsWith(' 0'))
}

describe('createMetrics', () => {
  it('counts each event once and writes it to the log', async () => {
    const lines: string[] = []
    const metrics = createMetrics()
    const events = createEvents(
      createLogger('info', { write: (line) => lines.push(line) }),
      metrics.instruments,
    )
    const partner = 'acme'
    const timed = { durationMs: 1_500, queuedMs: 20 }
    const batch = {
      ...timed,
      partner,
      accepted: 5,
      refused: 2,
      notApplied: 1,
      unknown: 0,
      records: 8,
      changesets: 1,
      outcomesShown: true,
      unmappedFields: 3,
      convertedFields: 2,
      replayed: false,
    }
    events.batchAnswered(batch)
    events.batchAnswered({ ...batch, replayed: true })
    events.batchIdsReused({ partner })
    events.recovered({ partner, records: 2, accepted: 1, refused: 0, notApplied: 0, unknown: 1 })
    events.recoveryFailed({ code: 'ADP_JOURNAL_UNAVAILABLE' })
    events.readAnswered({ ...timed, partner, kind: 'collection', status: 200, rows: 40, pages: 2 })
    events.readAnswered({ ...timed, partner, kind: 'record', status: 404, rows: 0, pages: 1 })
    events.passedThrough({ ...timed, partner, method: 'GET', status: 429 })
    events.requestRefused({ code: 'ADP_HOST', status: 400, partner: undefined })
    events.credentialsDenied({ status: 401, partner })
    events.passThroughFailed({ reason: 'unreachable' })
    events.internalError({ errorName: 'TypeError', stack: [] })
    events.journalFailed({ reason: 'ENOSPC' })
    events.journalLeaseLost()
    events.started({ url: 'http://127.0.0.1:1' })
    expect(lines.length).toBe(15)
    expect((await samples(metrics)).sort()).toEqual([
      'markbridge_batch_ids_reused_total{partner="acme"} 1',
      'markbridge_batches_replayed_total{partner="acme"} 1',
      'markbridge_converted_fields_total{partner="acme"} 2',
      'markbridge_credentials_denied_total{partner="acme"} 1',
      'markbridge_internal_errors_total 1',
      'markbridge_journal_failures_total 1',
      'markbridge_journal_leases_lost_total 1',
      'markbridge_pass_through_failures_total{reason="unreachable"} 1',
      'markbridge_read_pages_total{partner="acme"} 3',
      'markbridge_read_rows_total{partner="acme"} 40',
      'markbridge_records_recovered_total{partner="acme",outcome="accepted"} 1',
      'markbridge_records_recovered_total{partner="acme",outcome="unknown"} 1',
      'markbridge_records_total{partner="acme",outcome="accepted"} 5',
      'markbridge_records_total{partner="acme",outcome="not_applied"} 1',
      'markbridge_records_total{partner="acme",outcome="refused"} 2',
      'markbridge_recovery_failures_total{code="ADP_JOURNAL_UNAVAILABLE"} 1',
      'markbridge_request_duration_seconds_count{partner="acme",kind="batch"} 2',
      'markbridge_request_duration_seconds_count{partner="acme",kind="pass_through"} 1',
      'markbridge_request_duration_seconds_count{partner="acme",kind="read"} 2',
      'markbridge_request_duration_seconds_sum{partner="acme",kind="batch"} 3',
      'markbridge_request_duration_seconds_sum{partner="acme",kind="pass_through"} 1.5',
      'markbridge_request_duration_seconds_sum{partner="acme",kind="read"} 3',
      'markbridge_requests_refused_total{code="ADP_HOST"} 1',
      'markbridge_requests_total{partner="acme",kind="batch",status="2xx"} 2',
      'markbridge_requests_total{partner="acme",kind="pass_through",status="429"} 1',
      'markbridge_requests_total{partner="acme",kind="read",status="2xx"} 1',
      'markbridge_requests_total{partner="acme",kind="read",status="4xx"} 1',
      'markbridge_unmapped_fields_total{partner="acme"} 3',
    ])
  })

  it('counts V3 calls by status class, and counts calls that waited in the queue or left the queue early', async () => {
    const metrics = createMetrics()
    for (const status of [201, 204, 404, 429, 503, undefined])
      metrics.called({ kind: 'write', status, durationMs: 250 })
    metrics.queued({ priority: 'read', waitedMs: 2_000, refused: undefined })
    metrics.queued({ priority: 'write', waitedMs: 0, refused: 'full' })
    const counted = (await samples(metrics)).filter((line) => !line.includes('_sum{'))
    expect(counted).toEqual([
      'markbridge_v3_call_duration_seconds_count{kind="write",status="2xx"} 2',
      'markbridge_v3_call_duration_seconds_count{kind="write",status="4xx"} 1',
      'markbridge_v3_call_duration_seconds_count{kind="write",status="429"} 1',
      'markbridge_v3_call_duration_seconds_count{kind="write",status="5xx"} 1',
      'markbridge_v3_call_duration_seconds_count{kind="write",status="none"} 1',
      'markbridge_queue_wait_seconds_count{priority="read"} 1',
      'markbridge_queue_refused_total{priority="write",reason="full"} 1',
    ])
  })

  it('reads gauges whenever the metrics are rendered, as one number or as one number for each label value', async () => {
    const metrics = createMetrics()
    let depth = 1
    metrics.addGauge('depth', 'How deep.', () => depth)
    const open = () => [
      { state: 'unknown', value: depth },
      { state: 'parked', value: 7 },
    ]
    metrics.addGauge('open', 'What is open.', () => Promise.resolve(open()), { labels: ['state'] })
    await metrics.render()
    depth = 2
    expect(await samples(metrics)).toEqual([
      'markbridge_depth 2',
      'markbridge_open{state="unknown"} 2',
      'markbridge_open{state="parked"} 7',
    ])
  })

  it('omits a gauge whose value cannot be read', async () => {
    const metrics = createMetrics()
    let reading = Promise.resolve([{ partner: 'acme', value: 3 }])
    metrics.addGauge('kept', 'What is kept.', () => reading, { labels: ['partner'] })
    expect(await samples(metrics)).toEqual(['markbridge_kept{partner="acme"} 3'])
    reading = Promise.reject(new Error('nobody answers'))
    expect(await samples(metrics)).toEqual([])
  })

  it('creates metrics that are independent of other calls, and includes the metrics of the process', async () => {
    const [one, other] = [createMetrics(), createMetrics()]
    createEvents(createLogger('silent'), one.instruments).internalError({ errorName: 'Error', stack: [] })
    expect(await samples(one)).toEqual(['markbridge_internal_errors_total 1'])
    expect(await samples(other)).toEqual([])
    const { contentType, text } = await one.render()
    expect(contentType).toMatch(/^text\/plain; version=0\.0\.4/)
    expect(text).toContain('process_resident_memory_bytes')
  })
})

/** Splits a text into lines and sorts the labels of each line. */
const linesOf = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.replace(/\{(.*)\}/, (_, labels: string) => `{${labels.split(',').sort().join()}}`))

it('formatMetrics formats metrics exactly as the library prom-client formats them', async () => {
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

it('formatMetrics yields to the event loop while it formats thousands of series', async () => {
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

/** Returns the metrics of a process after some calls to V3 and unexpected errors, with 30 records in the shared journal. */
async function show({ calls, errors }: { calls: number; errors: number }): Promise<MetricsSnapshot> {
  const metrics = createMetrics()
  const events = createEvents(createLogger('silent'), metrics.instruments)
  for (let n = 0; n < calls; n += 1) metrics.called({ kind: 'write', status: 201, durationMs: 20 })
  for (let n = 0; n < errors; n += 1) events.internalError({ errorName: 'Error', stack: [] })
  metrics.addGauge('under_way', 'Now.', () => calls)
  metrics.addGauge('kept', 'In the journal.', () => 30, { shared: true })
  // Copies the snapshot as the channel between processes does.
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

it('the merged metrics of all workers keep the counts of workers that have ended', async () => {
  const sum = createMetricsSum(Date.now)
  for (const worker of [1, 2]) sum.started(worker)
  sum.replace(1, await show({ calls: 3, errors: 1 }))
  sum.replace(2, await show({ calls: 4, errors: 0 }))
  expect(await totals(sum)).toEqual({ workers: 2, ends: 0, calls: 7, errors: 1, underWay: 7, kept: 30 })
  sum.ended(1)
  sum.started(3)
  expect(await totals(sum)).toEqual({ workers: 2, ends: 1, calls: 7, errors: 1, underWay: 4, kept: 30 })
  sum.replace(3, await show({ calls: 1, errors: 1 }))
  sum.ended(2)
  // A snapshot that arrives after its worker has ended must not count.
  sum.replace(2, await show({ calls: 9, errors: 9 }))
  expect(await totals(sum)).toEqual({ workers: 1, ends: 2, calls: 8, errors: 2, underWay: 1, kept: 30 })
  const { contentType, text } = await sum.render()
  expect(contentType).toMatch(/^text\/plain; version=0\.0\.4/)
  expect(new Set(text.match(/^# TYPE \S+/gm)).size).toBe(text.match(/^# TYPE \S+/gm)?.length)
})
