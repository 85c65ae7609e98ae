import { describe, expect, it } from 'vitest'

import { batchOf, flatRecord, flatRecords, postBatch } from '../support/batch-request.ts'
import { readSamples } from '../support/read-samples.ts'
import { type Answer, echoRecord, replyWith } from '../support/scripted-upstream.ts'
import { onePartner, startAdapter, startWithV3 } from '../support/start-adapter.ts'

const read = '/V2/Attendance/AttendanceRecords?$filter=Learner%20eq%20feedfeed-0000-4000-8000-00000000feed'

const service: Answer = (seen, response) =>
  (seen.method === 'POST' ? echoRecord : replyWith(200, { value: [] }))(seen, response)

describe('GET /metrics', () => {
  it('counts batches, reads, passed-through requests and calls to V3, and shows the queue', async () => {
    const { adapter } = await startWithV3(service, onePartner({ v3: { callsPerSecond: 4 } }))
    await postBatch(adapter, batchOf([...flatRecords(3), flatRecord(4, { MinutesLate: 'x' })]))
    await adapter.request('GET', read)
    await adapter.request('GET', '/V3/LearnerPersonals')
    await adapter.request('GET', '/elsewhere')
    const seen = await readSamples(adapter)
    const expected = {
      'markbridge_requests_total{partner="acme",kind="batch",status="2xx"}': 1,
      'markbridge_requests_total{partner="acme",kind="read",status="2xx"}': 1,
      'markbridge_requests_total{partner="acme",kind="pass_through",status="2xx"}': 1,
      'markbridge_requests_refused_total{code="ADP_NOT_FOUND"}': 1,
      'markbridge_records_total{partner="acme",outcome="accepted"}': 3,
      'markbridge_records_total{partner="acme",outcome="refused"}': 1,
      'markbridge_v3_call_duration_seconds_count{kind="write",status="2xx"}': 3,
      'markbridge_v3_call_duration_seconds_count{kind="read",status="2xx"}': 1,
      'markbridge_v3_call_duration_seconds_count{kind="pass_through",status="2xx"}': 1,
      'markbridge_queue_wait_seconds_count{priority="write"}': 3,
      'markbridge_queue_wait_seconds_count{priority="read"}': 2,
      'markbridge_queue_length{priority="read"}': 0,
      markbridge_in_flight_requests: 0,
      markbridge_in_flight_bytes: 0,
    }
    const names = Object.keys(expected)
    expect(Object.fromEntries(names.map((name) => [name, seen.get(name)]))).toEqual(expected)
    expect(seen.get('markbridge_queue_wait_seconds_sum{priority="read"}')).toBeGreaterThan(0)
    expect(seen.get('process_start_time_seconds')).toBeGreaterThan(0)
  })

  it('shows the requests and bytes in progress, and the length of the queue', async () => {
    const { upstream, adapter } = await startWithV3(
      () => undefined,
      onePartner({ v3: { callsPerSecond: 1, budgetMs: 2_000 } }),
    )
    const batch = postBatch(adapter, batchOf(flatRecords(3)))
    await upstream.arrived(1)
    const seen = await readSamples(adapter)
    expect(seen.get('markbridge_in_flight_requests')).toBe(1)
    expect(seen.get('markbridge_in_flight_bytes')).toBeGreaterThan(1_000)
    expect(seen.get('markbridge_queue_length{priority="write"}')).toBe(2)
    await batch
    expect((await readSamples(adapter)).get('markbridge_in_flight_bytes')).toBe(0)
  })

  it('contains no value of a request, no subscription key and no path', async () => {
    const { upstream, adapter } = await startWithV3(service)
    await postBatch(adapter, batchOf([flatRecord(1, { Comment: 'hush' })]))
    await adapter.request('GET', read)
    await adapter.request('GET', '/V3/hush')
    await adapter.request('GET', '/hush', { headers: { Authorization: 'bearer hush' } })
    const { text } = await adapter.request('GET', '/metrics')
    for (const marker of ['hush', 'feedfeed', 'client-key', 'client-token', 'V3/', upstream.url])
      expect(text).not.toContain(marker)
  })

  it('answers only callers on the same machine unless listen.metrics is any', async () => {
    const forwarded = { headers: { 'X-Forwarded-For': '198.51.100.7' } }
    const adapter = await startAdapter('http://127.0.0.1:1')
    const refused = await adapter.request('GET', '/metrics', forwarded)
    expect([refused.status, refused.text]).toEqual([403, expect.stringContaining('listen.metrics')])
    const open = await startAdapter('http://127.0.0.1:1', { listen: { port: 0, metrics: 'any' } })
    expect((await open.request('GET', '/metrics', forwarded)).status).toBe(200)
  })
})
