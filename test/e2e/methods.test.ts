import { readFile } from 'node:fs/promises'

import { expect, test } from 'vitest'

import { RawClient, requestText } from '../support/raw-client.ts'
import { replyWith, startUpstream } from '../support/scripted-upstream.ts'
import { startAdapter, startWithV3 } from '../support/start-adapter.ts'

const methods = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'CONNECT', 'PROPFIND', 'LOCK', 'MERGE', 'QUERY', 'PURGE'] // prettier-ignore
const reads = ['GET', 'HEAD', 'OPTIONS']

/** Paths of each kind, with the methods that reach V3. Every other method gets 405, or for a path without such methods 404 or 405. */
const kinds: readonly (readonly [path: string, passed: readonly string[]])[] = [
  ['/V3/LearnerIdentifiers', reads],
  ['/Learner/V3/LearnerSENs(1)', reads],
  ['/V1/LearnerGrants', reads],
  ['/V1/Lookup/Learner/Gender', reads],
  ['/Attendance/V3/$metadata', reads],
  ['/V3/LearnerPersonals', [...reads, 'PATCH']],
  ['/Learner/odata/V3/Learner/LearnerPersonals(1)', [...reads, 'PATCH']],
  ['/V3/LearnerPersonals(1)/PreviousNames', reads],
  ['/Attendance/V3/AttendanceRecords', [...reads, 'POST']],
  ['/attendance/v3/attendancerecords/', [...reads, 'POST']],
  ['/Attendance/V3/AttendanceRecords()', [...reads, 'POST']],
  ...['/V3', '/V3/', '/v1', '/Attendance/V3', '/Learner/V3', '/x/Learner/odata/V3', '/V1/Lookup'].map(
    (root) => [root, reads] as const,
  ),
  ['/Attendance/V3/AttendanceRecords(1)', reads],
  ['/Attendance/V3/AttendanceRecords/SIMS.Changes(startDate=2026-01-01T00:00:00Z)', reads],
  ['/V1/AttendanceRecords', reads],
  // By default, no allow entry names the path of a V3 batch.
  ...['/Attendance/V3/$batch', '/V3/%24batch/', '/V1/$BATCH'].map((batch) => [batch, []] as const),
]

async function ask(port: number, start: string): Promise<{ status: number; allow: string | undefined }> {
  const client = await RawClient.open(port, requestText(start, 'Connection: close\r\nContent-Length: 0\r\n'))
  const reply = await client.untilClosed()
  const [, status = ''] = /^HTTP\/1\.1 (\d{3})/.exec(reply) ?? []
  return { status: Number(status), allow: /^Allow: (.*)\r$/m.exec(reply)?.[1] }
}

test('the adapter answers 405 to a method that the kind of a path does not allow, and does not forward the request', async () => {
  const { upstream, adapter } = await startWithV3(replyWith(200, 'ok', { 'Content-Type': 'text/plain' }))
  const reached = (): string[] => upstream.seen.splice(0).map(({ method }) => method)
  for (const [path, passed] of kinds) {
    const seen: string[] = []
    for (const method of methods) {
      const { status, allow } = await ask(adapter.port, `${method} ${path}`)
      if (status === 200) seen.push(method)
      // The reply to CONNECT can have another `Allow`, because the server answers CONNECT itself, without looking at the path.
      else if (passed.length === 0) expect([method, [404, 405].includes(status)]).toEqual([method, true])
      else if (method !== 'CONNECT') expect([path, method, status, allow]).toEqual([path, method, 405, passed.join(', ')])
      else expect(status).toBe(405)
    } // prettier-ignore
    expect([path, seen]).toEqual([path, passed])
    expect([path, reached()]).toEqual([path, passed])
  }
})

test('the adapter accepts only the methods that an allow entry names', async () => {
  const upstream = await startUpstream(replyWith(200, 'ok', { 'Content-Type': 'text/plain' }))
  const allow = ['/V3/**', { path: '/**/Things', methods: ['PUT', 'DELETE'] }]
  const adapter = await startAdapter(upstream.url, { passThrough: { allow } })
  for (const method of methods.slice(0, 9)) {
    const { status } = await ask(adapter.port, `${method} /V3/Things`)
    expect([method, status]).toEqual([method, ['PUT', 'DELETE'].includes(method) ? 200 : 405])
  }
})

const v2Batch = await readFile(
  new URL('../../fixtures/class-register/request.http', import.meta.url),
  'latin1',
)
const ofV2 = v2Batch.slice(v2Batch.indexOf('\r\n\r\n') + 4)
const ofV3 =
  '--b\r\nContent-Type: application/http\r\n\r\nPOST AttendanceRecords HTTP/1.1\r\n\r\n{"Attendee":{}}\r\n--b--\r\n'
const asMultipart = (body: string, boundary = /^--(.*)\r/.exec(body)?.[1] ?? ''): string =>
  `Connection: close\r\nContent-Type: multipart/mixed; boundary=${boundary}\r\nContent-Length: ${body.length}\r\n`

test('the adapter passes a V3 $batch through only if an allow entry names exactly its path', async () => {
  const upstream = await startUpstream(replyWith(200, 'ok', { 'Content-Type': 'text/plain' }))
  const allow = ['/**/V3/**', '/Attendance/V3/$batch']
  const adapter = await startAdapter(upstream.url, { passThrough: { allow } })
  const post = async (path: string): Promise<string> => {
    const client = await RawClient.open(adapter.port, requestText(`POST ${path}`, asMultipart(ofV3)) + ofV3)
    return (await client.untilClosed()).slice(9, 12)
  }
  expect([await post('/Attendance/V3/$batch'), await post('/V3/$batch')]).toEqual(['200', '405'])
  expect(upstream.seen.map(({ url, body }) => [url, body])).toEqual([['/Attendance/V3/$batch', ofV3]])
})

test.each([
  '/Attendance/V3/$batch',
  '/Attendance/V3/AttendanceRecords',
  '/Attendance/V3',
  '/V3/$batch',
  '/V1/$batch',
  '/AttendanceServiceFarm1/OData/V1/AttendanceRecords',
])('the adapter refuses a V2 batch that is posted to %s, and its error names the V2 path', async (path) => {
  const upstream = await startUpstream(replyWith(200, 'ok', { 'Content-Type': 'text/plain' }))
  const adapter = await startAdapter(upstream.url, {
    passThrough: { allow: ['/**/V3/**', '/**/V1/**', '/Attendance/V3/$batch'] },
  })
  const start = requestText(`POST ${path}`, asMultipart(ofV2))
  for (const cuts of [[], [start.length], [start.length + 300, start.length + 700]]) {
    const client = await RawClient.open(adapter.port, '')
    const all = start + ofV2
    for (const [from, to] of [0, ...cuts].map((cut, at) => [cut, [...cuts, all.length][at]] as const)) {
      client.send(all.slice(from, to))
      await new Promise((resolve) => setImmediate(resolve))
    }
    const reply = await client.untilClosed()
    expect([reply.slice(9, 12), reply.includes('Nothing was sent')]).toEqual([/^4\d\d$/.exec(reply.slice(9, 12))?.[0], true])
    expect(reply).toContain('/V2/Attendance/$batch')
  }
  expect(upstream.seen).toEqual([])
}) // prettier-ignore
