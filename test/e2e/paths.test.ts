import { expect, test } from 'vitest'

import { exchange, RawClient, requestText } from '../support/raw-client.ts'
import { replyWith, startUpstream } from '../support/scripted-upstream.ts'
import { type Adapter, startAdapter, startWithV3 } from '../support/start-adapter.ts'

/**
 * The expected result of a GET with `passThrough.allow: ['/**']`, which allows every path. `refused`: 400 ADP_PATH. `absent`: 404 from the
 * adapter. `own`: 200 from the adapter. `translated`: 405, because the route accepts POST only. `passed`: forwarded to V3 byte for byte.
 * Only `passed` requests reach V3.
 */
type Fate = 'refused' | 'absent' | 'own' | 'translated' | 'passed'

const spellings: Readonly<Record<Fate, readonly string[]>> = {
  own: ['/metrics', '/healthz', '/readyz', '/metrics?x=1', '/healthz?', 'http://adapter.test/metrics', 'HTTP://adapter.test/readyz?x'],
  // Other spellings of the adapter's own paths. They get 404, and are not forwarded to V3.
  absent: [
    '/METRICS', '/Metrics', '/metricS', '/metrics/', '/METRICS/', '/%6detrics', '/metric%73', '/%4DETRICS', '/%6d%65%74%72%69%63%73/', '/metrics/?x',
    '/Healthz', '/healthz/', '/health%7a', '/HEALTH%5A/', '/READYZ', '/readyz/', '/%72eadyz', 'http://adapter.test/METRICS', 'http://adapter.test/metrics/',
  ],
  translated: [
    '/V2/Attendance/$batch', '/v2/attendance/$BATCH', '/V2/Attendance/%24batch', '/V2/Attendance/%24%62atch', '/%562/Attendance/$batch', '/V2/%41ttendance/$batch/',
    '/x/y/V2/Attendance/$batch', '/x%20y/V2/Attendance/$batch', '/DEE/V2/Attendance/$batch', 'http://adapter.test/V2/Attendance/$batch', 'https://adapter.test/x/v2/attendance/%24batch?q',
  ],
  passed: [
    '/', '/V3/LearnerIdentifiers', '/v3/learneridentifiers/', '/Learner/odata/V3/LearnerIdentifiers', '/V3/a%20b', '/V3/caf%C3%A9', '/V3/%24metadata', '/V3/a..b', '/V3/.a',
    "/Learner/v3/LearnerGroups(ExternalID=1,GroupType=SIMS.GroupTypeEnum'YearGroup')/LearnerIdentifiers", "/V3/Groups(Type=N%27x.y%27)", '/V3/a?$filter=../x//y;z', '/V3/a?x=%2e%2e%2f%zz', '/V3/a?b?c',
    '/V3/AttendanceRecords/SIMS.Changes(startDate=2026-03-02T09:00:00Z)', '/x/metrics', '/metrics/x', '/metricsx', '/V2/Attendance/$batches', '/V2/Attendance$batch',
  ],
  refused: [
    // Dot segments, plain and escaped, with additions that servers strip: parameters (Tomcat), spaces and dots at the end (Windows).
    '/..', '/.', '/../', '/./', '/V3/..', '/V3/.', '/V3/../metrics', '/V3/../V1/x', '/V3/%2e%2e/x', '/V3/.%2E/x', '/V3/%252e%252e/x', '/./metrics', '/V3/./x', '/a/../../b', '/%2e%2e/x', '/.%2e/x', '/%2E./x', '/V3/%2e', '/V3/%2e%2e',
    '/V3/..;/x', '/V3/..;x/y', '/V3/..;a=b/y', '/V3/.;/x', '/V3/%2e%2e;/x', '/V3/..%3b/x', '/V3/..%3Bx/y', '/V3/;/x', '/V3;x/LearnerIdentifiers', '/V3/x;jsessionid=1', '/;/metrics', '/metrics;x', '/metrics;/', '/V2/Attendance;x/$batch',
    '/V3/..%20/x', '/V3/%20../x', '/V3/.%20./x', '/V3/..%20', '/V3/..%09/x', '/V3/..%c2%a0/x', '/V3/..%e3%80%80/x', '/V3/x%20', '/V3/%20x', '/V3/...', '/V3/.../x', '/V3/x.', '/V3/x./y', '/metrics%20', '/metrics.', '/V2/Attendance/$batch.',
    // Several layers of escapes, and escapes that are invalid at some layer.
    '/%252e%252e/x', '/%25252e%25252e/x', '/%2525252e%2525252e/x', '/%25%32%65%25%32%65/x', '/%%32%65%%32%65/x', '/V3/%252e%252e/%zz', '/V3/%252e%252e/%25zz', '/V3/a%2541', '/V3/100%25', '/V3/%', '/V3/%2', '/V3/%zz', '/V3/%25zz', '/V3/%u002e%u002e/x', '/V3/%c3', '/V3/%c0%ae%c0%ae/x', '/V3/%c0%ae', '/V3/%e0%80%ae/x', '/V3/%ed%a0%80', '/%256detrics', '/V2/Attendance/%2524batch', '/%zz/V2/Attendance/$batch',
    // Slashes and backslashes.
    '//', '//metrics', '/metrics//', '//evil.test/V3/x', '/V3//x', '/V3/x//', '/a%2fb', '/a%2Fb', '/%2fmetrics', '/..%2fmetrics', '/a%252fb', '/a%25252Fb', '/a\\b', '/V3/a\\b', '/V3/a%2fb', '/V3/a%5Cb', '/V3/a%255cb', '/..\\x', '/a%5cb', '/a%5Cb', '/%5cmetrics', '/a%255cb', '/V3/..%5c..%5cx', 'http://adapter.test//metrics', 'http://evil.test//V3/x',
    // Characters that end a path.
    '/metrics#', '/metrics#x', '/V3/a#/../b', '/V3/a%23b', '/V3/a%3fb', '/V3/a?x#y', '/V3/..#', '#', '/#', '/V3/%23/../x',
    // Control characters.
    '/V3/%00', '/metrics%00', '/V3/x%00.json', '/V3/%0a', '/V3/%0d%0aX:%20y', '/V3/%09', '/V3/%1f', '/V3/%7f', '/V3/%c2%85', '/V3/%e2%80%a8', '/V3/%e2%80%8b', '/V3/%ef%bb%bf',
    // Characters that a server may fold into ASCII.
    '/V3/%ef%bc%8e%ef%bc%8e/x', '/V3/%e2%80%a5/x', '/V3/a%ef%bc%8fb', '/V3/a%e2%88%95b', '/V3/a%e2%81%84b', '/V3/a%ef%bc%bcb', '/V3/%ef%bc%85', '/V3/x%ef%bc%9by', '/%ef%bd%8detrics', '/metric%c5%bf', '/V3/%e2%84%aa',
    // Request targets in other forms.
    '*', 'metrics', 'V3/x', 'http://', 'http:///V3/x', 'http://u@adapter.test/V3/x', 'http://u:p@adapter.test/metrics', 'http://a b/', 'ftp://adapter.test/V3/x', 'file:///metrics', 'http:/V3/x', 'http://adapter.test/../metrics', 'http://adapter.test/V3/%252e%252e', 'http://a@evil.test#/V3/x', 'javascript:x',
  ],
} // prettier-ignore

const cases = Object.entries(spellings).flatMap(([fate, paths]) => paths.map((path) => ({ path, fate })))

function fateOf(reply: string): string {
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(reply)?.[1])
  const code = /"code":"(ADP_\w+)"/.exec(reply)?.[1]
  if (status === 200) return reply.includes('from V3') ? 'passed' : 'own'
  if (status === 400 && code === 'ADP_PATH') return 'refused'
  // The parser of Node.js rejects some targets before the adapter sees them.
  if (status === 400 && reply.includes('not valid HTTP')) return 'refused'
  if (status === 404 && code === 'ADP_NOT_FOUND') return 'absent'
  if (status === 405 && /^Allow: POST\r$/im.test(reply)) return 'translated'
  return `${status} ${code ?? ''}`
}

async function fateOfPath(adapter: Adapter, path: string): Promise<string> {
  const client = await RawClient.open(adapter.port, requestText(`GET ${path}`, 'Connection: close\r\n'))
  return fateOf(await client.untilClosed())
}

test(`the adapter refuses, serves or forwards each of ${cases.length} spellings of a path as expected, and forwards paths unchanged`, async () => {
  expect(cases.length).toBeGreaterThan(150)
  const upstream = await startUpstream(replyWith(200, 'from V3', { 'Content-Type': 'text/plain' }))
  const listen = { port: 0, metrics: 'any' }
  const adapter = await startAdapter(upstream.url, { listen, passThrough: { allow: ['/**'] } })
  const seen: { path: string; fate: string }[] = []
  for (const { path } of cases) seen.push({ path, fate: await fateOfPath(adapter, path) })
  expect(seen).toEqual(cases)
  expect(upstream.seen.map(({ url }) => url)).toEqual(spellings.passed)
})

test('the adapter serves a target in absolute form by its path, and uses the host of the target as Host', async () => {
  const { upstream, adapter } = await startWithV3(replyWith(200, '{"value":[],"@odata.nextLink":"x"}'))
  const client = await RawClient.open(adapter.port)
  client.send(requestText('GET http://other.test:81/V3/LearnerIdentifiers?$top=1', 'Connection: close\r\n'))
  expect(await client.untilClosed()).toMatch(/^HTTP\/1\.1 200 /)
  expect(upstream.seen.map(({ url, headers }) => [url, headers['x-forwarded-host']])).toEqual([
    ['/V3/LearnerIdentifiers?$top=1', 'other.test:81'],
  ])
})

// Each part of a reply repeats path and host. Without a limit, 12,000 records at a path of 120,000 characters get a reply of 1.3 GB.
test('the adapter rejects an overlong path or host before it reads the body', async () => {
  const { upstream, adapter } = await startWithV3(replyWith(200, '{}'))
  const path = `/${'a'.repeat(2_047 - '/V2/Attendance/$batch'.length)}`
  expect(await fateOfPath(adapter, `${path}/V2/Attendance/$batch`)).toBe('translated')
  expect(await fateOfPath(adapter, `${path}a/V2/Attendance/$batch`)).toBe('refused')
  expect(await fateOfPath(adapter, `${'/a'.repeat(61)}/V2/Attendance/$batch`)).toBe('translated')
  expect(await fateOfPath(adapter, `${'/a'.repeat(62)}/V2/Attendance/$batch`)).toBe('refused')
  const long = `GET /V3/LearnerIdentifiers HTTP/1.1\r\nHost: ${'a'.repeat(120_000)}\r\nConnection: close\r\n\r\n`
  expect(await exchange(adapter.port, long)).toMatch(/^HTTP\/1\.1 400 [^]*"ADP_HOST"/)
  expect(upstream.seen).toEqual([])
})

test('the adapter rejects a transfer coding that it does not support', async () => {
  const { upstream, adapter } = await startWithV3(replyWith(200, '{}'))
  const post = (coding: string): Promise<string> =>
    exchange(
      adapter.port,
      `POST /V3/LearnerIdentifiers HTTP/1.1\r\nHost: adapter.test\r\nConnection: close\r\nTransfer-Encoding: ${coding}\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    )
  expect(await post('gzip, chunked')).toMatch(/^HTTP\/1\.1 415 [^]*"ADP_CONTENT_ENCODING"/)
  expect(upstream.seen).toEqual([])
  expect(await post('Chunked')).not.toContain('ADP_CONTENT_ENCODING')
})
