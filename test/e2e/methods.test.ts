import { expect, test } from 'vitest'

import { RawClient, requestText } from '../support/raw-client.ts'
import { replyWith, startUpstream } from '../support/scripted-upstream.ts'
import { startAdapter, startWithV3 } from '../support/start-adapter.ts'

const methods = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'CONNECT', 'PROPFIND', 'LOCK', 'MERGE', 'QUERY', 'PURGE'] // prettier-ignore
const reads = ['GET', 'HEAD', 'OPTIONS']

/** Paths of each kind, with the methods that reach V3; all others are 405. */
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
  ['/Attendance/V3/AttendanceRecords(1)', reads],
  ['/Attendance/V3/AttendanceRecords/SIMS.Changes(startDate=2026-01-01T00:00:00Z)', reads],
  ['/V1/AttendanceRecords', reads],
  ['/Attendance/V3/$batch', ['POST']],
  ['/Attendance/V3/%24batch', ['POST']],
]

/** Sends one request; resolves with its status, and what `Allow` says. */
async function ask(port: number, start: string): Promise<{ status: number; allow: string | undefined }> {
  const client = await RawClient.open(port, requestText(start, 'Connection: close\r\nContent-Length: 0\r\n'))
  const reply = await client.untilClosed()
  const [, status = ''] = /^HTTP\/1\.1 (\d{3})/.exec(reply) ?? []
  return { status: Number(status), allow: /^Allow: (.*)\r$/m.exec(reply)?.[1] }
}

test('a path takes the methods of its kind; every other one is 405, and nothing leaves', async () => {
  const { upstream, adapter } = await startWithV3(replyWith(200, 'ok', { 'Content-Type': 'text/plain' }))
  const reached = (): string[] => upstream.seen.splice(0).map(({ method }) => method)
  for (const [path, passed] of kinds) {
    const seen: string[] = []
    for (const method of methods) {
      const { status, allow } = await ask(adapter.port, `${method} ${path}`)
      if (status === 200) seen.push(method)
      // CONNECT never is a request of a path: Node gives it no path.
      else if (method !== 'CONNECT') expect([path, method, status, allow]).toEqual([path, method, 405, passed.join(', ')])
      else expect(status).toBe(405)
    } // prettier-ignore
    expect([path, seen]).toEqual([path, passed])
    expect([path, reached()]).toEqual([path, passed])
  }
})

test('an entry with methods of its own takes these and no others', async () => {
  const upstream = await startUpstream(replyWith(200, 'ok', { 'Content-Type': 'text/plain' }))
  const allow = ['/V3/**', { path: '/**/Things', methods: ['PUT', 'DELETE'] }]
  const adapter = await startAdapter(upstream.url, { passThrough: { allow } })
  for (const method of methods.slice(0, 9)) {
    const { status } = await ask(adapter.port, `${method} /V3/Things`)
    expect([method, status]).toEqual([method, ['PUT', 'DELETE'].includes(method) ? 200 : 405])
  }
})
