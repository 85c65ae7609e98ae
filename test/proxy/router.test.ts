import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'

import { describe, expect, it, onTestFinished } from 'vitest'

import { createAddressList } from '../../src/http/address.ts'
import { createByteBudget, createInFlight, createProxyApp, type ProxyContext } from '../../src/proxy/index.ts'
import { noGuards } from '../../src/rollout/index.ts'
import { noSeen } from '../../src/rollout/evidence/seen-writes.ts'
import { defaultBatchLimits } from '../../src/v2/index.ts'
import { systemClock } from '../../src/clock.ts'
import { exchange } from '../support/raw-client.ts'
import { createWriteContext, refuse } from '../writes/write-context.ts'

/** The status line of the answer to one request, in front of a service that nobody may use. */
async function statusOf(start: string, ready = true): Promise<string> {
  const passThrough = {
    checkMethod: () => undefined,
    handle: () => Promise.resolve(),
    held: () => 0,
    close: () => Promise.resolve(),
  }
  const context: ProxyContext = {
    ...createWriteContext(),
    passThrough,
    recognise: refuse,
    authorise: refuse,
    stages: { enter: refuse },
    guards: noGuards,
    relays: { of: refuse, uploadLost: refuse, held: () => 0, close: () => Promise.resolve() },
    comparison: {
      isWanted: refuse,
      offer: refuse,
      throttled: refuse,
      wrote: refuse,
      close: () => Promise.resolve(),
    },
    recording: { open: () => undefined },
    noteUnrecorded: () => undefined,
    seen: noSeen,
    reads: {
      planner: { tokenOf: refuse, plan: refuse, formatOf: refuse, selectOf: refuse, checkValue: refuse },
      codes: { knownRules: refuse, rulesFor: refuse },
      reader: { get: refuse, held: () => 0, close: () => Promise.resolve() },
      clock: systemClock,
      linkSecret: Buffer.alloc(32),
    },
    limits: () => defaultBatchLimits,
    byteBudget: createByteBudget(1),
    slowClients: { watch: () => undefined },
    inFlight: createInFlight(),
    enterPartner: refuse,
    trustedProxies: createAddressList([]),
    rewriteLinks: true,
  }
  const metrics = {
    readers: 'any',
    render: () => Promise.resolve({ contentType: 'text/plain', text: 'up 1' }),
  } as const
  const { listener, messages } = createProxyApp(context, () => (ready ? 'ready' : 'stopping'), metrics)
  const server = createServer({ ...messages }, listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const reply = await exchange(
    (server.address() as AddressInfo).port,
    `${start} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
  )
  return reply.split('\r\n')[0] ?? ''
}

describe('createProxyApp', () => {
  it.each([
    ['GET /healthz', true, 200],
    ['HEAD /healthz', true, 200],
    ['GET /readyz', true, 200],
    ['GET /healthz', false, 200],
    ['GET /readyz', false, 503],
    ['GET /metrics', true, 200],
    ['GET /V2/Attendance/$batch', true, 405],
    ['OPTIONS /V2/Attendance/$batch', true, 405],
    ['POST /V2/Attendance/$batch', true, 401],
    ['POST /%20x/v2/ATTENDANCE/%24Batch/', true, 400],
    ['POST /x%20y/v2/ATTENDANCE/%24Batch/', true, 401],
    ['POST http://other.test/V2/Attendance/$batch', true, 401],
    ['POST /V2/Attendance/AttendanceRecords', true, 401],
    ['POST /%zz/V2/Attendance/attendancerecords?x', true, 400],
    ['GET /V2/Attendance/AttendanceRecords', true, 401],
    ['PUT /V2/Attendance/AttendanceRecords', true, 405],
    ['GET /x/v2/attendance/attendancerecords(1)', true, 401],
    ['POST /V2/Attendance/AttendanceRecords%281%29', true, 405],
    ['GET /V2/Attendance/%24metadata', true, 401],
    ['POST /V2/Attendance/$metadata', true, 405],
    ['GET /V2/Attendance', true, 401],
    ['GET /V2/LearnerRegistations', true, 401],
    ['DELETE /V2/LearnerRegistations', true, 405],
    ['POST /V2/Attendance/$batches', true, 401],
    ['POST /V2/Attendance$batch', true, 401],
    ['GET /%zz', true, 400],
    ['POST /metrics', true, 405],
    ['TRACE /healthz', true, 405],
    ['TRACE /V2/Attendance/$batch', true, 405],
  ])('%s, ready %s: %i', async (start, ready, status) => {
    expect(await statusOf(start, ready)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
  })
})
