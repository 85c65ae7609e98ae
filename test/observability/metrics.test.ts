import { describe, expect, it } from 'vitest'

import { createEvents } from '../../src/observability/events.ts'
import { createLogger } from '../../src/observability/logger.ts'
import { createMetrics, type Metrics } from '../../src/observability/metrics.ts'

/** The samples of the adapter's own metrics that are not 0, without the buckets of histograms. */
async function samples(metrics: Metrics): Promise<string[]> {
  const { text } = await metrics.render()
  const lines = text.split('\n').filter((line) => /^markbridge_(?!.*_bucket\{)/.test(line))
  return lines.filter((line) => !line.endsWith(' 0'))
}

describe('createMetrics', () => {
  it('counts every event once, and hands it on', async () => {
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

  it('measures the calls to V3 and their turns', async () => {
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

  it('reads added gauges whenever it is asked, with one number or one for each value of its labels', async () => {
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

  it('shows no reading that is out of date when the next one fails', async () => {
    const metrics = createMetrics()
    let reading = Promise.resolve([{ partner: 'acme', value: 3 }])
    metrics.addGauge('kept', 'What is kept.', () => reading, { labels: ['partner'] })
    expect(await samples(metrics)).toEqual(['markbridge_kept{partner="acme"} 3'])
    reading = Promise.reject(new Error('nobody answers'))
    expect(await samples(metrics)).toEqual([])
  })

  it('has a registry of its own, with the figures of the process', async () => {
    const [one, other] = [createMetrics(), createMetrics()]
    createEvents(createLogger('silent'), one.instruments).internalError({ errorName: 'Error', stack: [] })
    expect(await samples(one)).toEqual(['markbridge_internal_errors_total 1'])
    expect(await samples(other)).toEqual([])
    const { contentType, text } = await one.render()
    expect(contentType).toMatch(/^text\/plain; version=0\.0\.4/)
    expect(text).toContain('process_resident_memory_bytes')
  })
})
