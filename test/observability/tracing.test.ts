import { afterEach, expect, it, vi } from 'vitest'
import * as z from 'zod'

import { openTracing } from '../../src/observability/tracing.ts'
import { journalFile } from '../e2e/support/journal-file.ts'
import { leave, payloadOf } from '../e2e/support/leave.ts'
import { batchOf, batchPath, flatRecord, guid, postBatch } from '../support/batch-request.ts'
import { echoRecord, keepMarks, replyWith, startUpstream } from '../support/scripted-upstream.ts'
import { type AdapterSettings, onePartner, startAdapter } from '../support/start-adapter.ts'

afterEach(() => {
  vi.unstubAllEnvs()
})

const attribute = z.object({ key: z.string(), value: z.record(z.string(), z.unknown()) })
const spanSchema = z.object({
  traceId: z.string(),
  spanId: z.string(),
  parentSpanId: z.string().default(''),
  name: z.string(),
  kind: z.number(),
  attributes: z.array(attribute),
  status: z.object({ code: z.number().default(0) }),
})
const bodySchema = z.object({
  resourceSpans: z.array(
    z.object({
      resource: z.object({ attributes: z.array(attribute) }),
      scopeSpans: z.array(z.object({ spans: z.array(spanSchema) })),
    }),
  ),
})

const toValues = (attributes: z.infer<typeof attribute>[]): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))

/** Starts a collector that accepts OTLP as JSON until the end of the test. */
async function startCollector(status = 200) {
  const collector = await startUpstream(replyWith(status, {}))
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', collector.url)
  const resources = () =>
    collector.seen.flatMap(({ body }) => bodySchema.parse(JSON.parse(body)).resourceSpans)
  return {
    text: () => collector.seen.map(({ url, body }) => `${url}\n${body}`).join('\n'),
    resources,
    spans: () => resources().flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans)),
  }
}

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const CALLER = '00f067aa0ba902b7'

/** Starts an adapter with traces in front of a service. `end` closes the adapter, so that all spans are sent. */
async function startTraced(settings: AdapterSettings, answer = echoRecord) {
  const collector = await startCollector()
  const upstream = await startUpstream(answer)
  const tracing = await openTracing(() => expect.unreachable('the spans were not sent'))
  const adapter = await startAdapter(
    upstream.url,
    { journal: journalFile(), v2: { baseUrl: upstream.url }, ...settings },
    { tracing },
  )
  return { collector, upstream, adapter, end: () => adapter.app.close() }
}

it('the adapter adds a span for a batch to the trace of the client, with a child span for each V3 call and commit', async () => {
  const { collector, upstream, adapter, end } = await startTraced(onePartner({}))
  const batch = batchOf([flatRecord(1), flatRecord(2)])
  const reply = await postBatch(adapter, batch, { traceparent: `00-${TRACE}-${CALLER}-01` })
  expect(reply.status).toBe(200)
  await end()
  const spans = collector.spans()
  const [server] = spans.filter(({ kind }) => kind === 2)
  expect(server).toMatchObject({ name: 'batch', traceId: TRACE, parentSpanId: CALLER, status: { code: 0 } })
  expect(toValues(server?.attributes ?? [])).toEqual({
    'http.request.method': 'POST',
    'http.response.status_code': 200,
    'markbridge.kind': 'batch',
    'markbridge.partner': 'acme',
    'markbridge.stage': 'v3',
    'markbridge.side': 'v3',
    'markbridge.accepted': 2,
    'markbridge.refused': 0,
    'markbridge.notApplied': 0,
    'markbridge.unknown': 0,
    'markbridge.records': 2,
    'markbridge.changesets': 1,
    'markbridge.outcomesShown': true,
    'markbridge.unmappedFields': 0,
    'markbridge.convertedFields': 0,
    'markbridge.replayed': false,
    'markbridge.durationMs': expect.any(Number) as number,
    'markbridge.queuedMs': 0,
  })
  const children = spans.filter((span) => span !== server)
  expect(children.map(({ name }) => name).sort()).toEqual(
    expect.arrayContaining(['V3 write', 'V3 write', 'journal begin', 'journal settle']),
  )
  for (const child of children)
    expect(child).toMatchObject({ traceId: TRACE, parentSpanId: server?.spanId, status: { code: 0 } })
  // The traceparent header that V3 receives names the span of the call.
  const calls = children.filter(({ name }) => name === 'V3 write').map(({ spanId }) => spanId)
  const sent = upstream.seen.map(({ headers }) => headers.traceparent)
  expect(sent.sort()).toEqual(calls.map((spanId) => `00-${TRACE}-${spanId}-01`).sort())
})

it('the adapter sends the id of the span of the call in traceparent when it forwards a request', async () => {
  const { collector, upstream, adapter, end } = await startTraced(
    onePartner({ stage: 'legacy' }),
    replyWith(200, {}),
  )
  const traceparent = `00-${TRACE}-${CALLER}-01`
  await postBatch(adapter, batchOf([flatRecord(1)]), { traceparent })
  await adapter.request('GET', '/V1/SchoolTerms', { headers: { traceparent } })
  await end()
  const spans = collector.spans()
  const calls = spans.filter(({ name }) => name === 'V2' || name === 'V3 pass-through')
  expect(calls.map(({ name }) => name)).toEqual(['V2', 'V3 pass-through'])
  expect(upstream.seen.map(({ headers }) => headers.traceparent)).toEqual(
    calls.map(({ spanId }) => `00-${TRACE}-${spanId}-01`),
  )
  for (const { parentSpanId } of calls)
    expect(spans.find(({ spanId }) => spanId === parentSpanId)?.kind).toBe(2)
})

it('the adapter ends the span of a V2 read as an error if V2 closes the connection without a reply', async () => {
  const part =
    'Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nHTTP/1.1 201 Created\r\n\r\n{}'
  const { collector, adapter, end } = await startTraced(
    onePartner({ stage: 'canary', canary: { percent: 0 } }),
    ({ method }, response) => {
      if (method === 'GET') response.destroy()
      else
        response
          .writeHead(200, { 'Content-Type': 'multipart/mixed; boundary=b' })
          .end(`--b\r\n${part}\r\n--b--\r\n`)
    },
  )
  // The second post makes the adapter read V2: a resend with another token gets the stored reply only if V2 shows the mark to that token.
  for (const token of ['one', 'other'])
    await postBatch(adapter, batchOf([flatRecord(1)]), { Authorization: `Bearer ${token}` })
  await end()
  const reads = collector.spans().filter(({ name }) => name === 'V2 read')
  expect(reads.map(({ status, attributes }) => [status.code, attributes])).toEqual([[2, []]])
})

it('the adapter traces the recovery of a batch as a recovery span, with child spans for calls and commits', async () => {
  const journal = journalFile({ encrypted: true })
  await leave(journal, { partner: 'acme', payload: payloadOf(batchOf([flatRecord(1)])), learners: [1] })
  const { collector, adapter, end } = await startTraced(
    { ...onePartner({ v3: { readBackAfterMs: [10] } }), journal },
    keepMarks(),
  )
  await vi.waitFor(() => expect(adapter.events().map(({ msg }) => msg)).toContain('records recovered'), {
    timeout: 60_000,
  })
  await end()
  const spans = collector.spans()
  const recovery = spans.filter(({ name }) => name === 'recovery')
  expect(recovery).toMatchObject([{ kind: 1, parentSpanId: '', status: { code: 0 } }])
  expect(toValues(recovery[0]?.attributes ?? [])).toEqual({
    'markbridge.partner': 'acme',
    'markbridge.records': 1,
    'markbridge.accepted': 1,
    'markbridge.refused': 0,
    'markbridge.notApplied': 0,
    'markbridge.unknown': 0,
  })
  const below = spans
    .filter(({ parentSpanId }) => parentSpanId === recovery[0]?.spanId)
    .map(({ name }) => name)
  expect(below).toEqual(expect.arrayContaining(['V3 read', 'V3 write', 'journal settle']))
})

it('the adapter adds a span for live comparison to the trace of the request', async () => {
  const { collector, adapter, end } = await startTraced(onePartner({ stage: 'shadow' }), replyWith(200, {}))
  await postBatch(adapter, batchOf([flatRecord(1)]), { traceparent: `00-${TRACE}-${CALLER}-01` })
  await end()
  const comparison = collector.spans().filter(({ name }) => name === 'comparison')
  const server = collector.spans().find(({ kind }) => kind === 2)
  expect(comparison).toMatchObject([{ kind: 1, traceId: TRACE, parentSpanId: server?.spanId }])
  expect(toValues(comparison[0]?.attributes ?? [])).toEqual({
    'markbridge.partner': 'acme',
    'markbridge.stage': 'shadow',
    'markbridge.kind': 'batch',
    'markbridge.side': 'v2',
  })
})

it('the adapter begins a new trace if traceparent is invalid, and sends no spans if the sampling flag is 0', async () => {
  const { collector, upstream, adapter, end } = await startTraced(onePartner({}))
  for (const [index, traceparent] of [
    '00-nonsense',
    `00-${'0'.repeat(32)}-${CALLER}-01`,
    `00-${TRACE}-${CALLER}-00`,
  ].entries())
    await postBatch(adapter, batchOf([flatRecord(index + 1)]), { traceparent })
  await end()
  const servers = collector.spans().filter(({ kind }) => kind === 2)
  expect(servers.map(({ parentSpanId }) => parentSpanId)).toEqual(['', ''])
  expect(servers.map(({ traceId }) => traceId)).not.toContain(TRACE)
  // The adapter passes the trace on to V3 even if the client has not sampled the trace.
  expect(upstream.seen.at(-1)?.headers.traceparent).toMatch(new RegExp(`^00-${TRACE}-[0-9a-f]{16}-00$`))
})

it('the adapter puts no learner, mark, credential, path or client text into a trace', async () => {
  const { collector, adapter, end } = await startTraced(onePartner({}))
  const marker = 'HUSHMARKER'
  const headers = {
    ...{
      traceparent: `00-${TRACE}-${CALLER}-01`,
      tracestate: `a=${marker}`,
      'User-Agent': marker,
      baggage: marker,
    },
    ...{ Authorization: `bearer ${marker}`, 'Ocp-Apim-Subscription-Key': marker },
  }
  await postBatch(adapter, batchOf([flatRecord(4_711, { Comment: marker, [marker]: 1 })]), headers)
  await postBatch(adapter, batchOf([flatRecord(4_711, { SchoolAttendanceCode: marker })]), headers)
  const path = batchPath.replace('$batch', 'AttendanceRecords')
  await adapter.request('GET', `${path}?$filter=${encodeURIComponent(`Learner eq ${guid(4_711)}`)}`, {
    headers,
  })
  await adapter.request('GET', `${path}(${guid(4_711)})`, { headers })
  await adapter.request('GET', `/V1/${marker}`, { headers })
  await end()
  const text = collector.text()
  expect(collector.spans().length).toBeGreaterThan(5)
  for (const secret of [marker, guid(4_711), guid(900_000), guid(800_000), 'AttendanceRecords', '/V1/'])
    expect(text.replace(/^\/v1\/traces$/gm, '')).not.toContain(secret)
})

it('the adapter takes resource attributes from the OTEL variables, and logs a warning if spans cannot be sent', async () => {
  vi.stubEnv('OTEL_RESOURCE_ATTRIBUTES', 'deployment.environment.name=test')
  const collector = await startCollector(400)
  let failures = 0
  const tracing = await openTracing(() => (failures += 1))
  const upstream = await startUpstream(echoRecord)
  const adapter = await startAdapter(upstream.url, onePartner({}), { tracing })
  await postBatch(adapter, batchOf([flatRecord(1)]))
  await adapter.app.close()
  expect(failures).toBeGreaterThan(0)
  const [resource] = collector.resources()
  expect(toValues(resource?.resource.attributes ?? [])).toEqual({
    'service.name': 'markbridge',
    'deployment.environment.name': 'test',
  })
})
