import type { ServerResponse } from 'node:http'

import { describe, expect, it } from 'vitest'

import {
  batchOf,
  failuresOf,
  flatRecord,
  flatRecords,
  guid,
  postBatch,
  postRecords,
  readBatchReply,
} from '../support/batch-request.ts'
import { type Answer, echoOf, echoRecord, replyWith, startUpstream } from '../support/scripted-upstream.ts'
import { onePartner, startAdapter, startWithV3 } from '../support/start-adapter.ts'

const quick = { timeouts: { connectMs: 1_000, headersMs: 300, bodyMs: 300 } }

const reset: Answer = (_seen, response) => {
  response.socket?.resetAndDestroy()
}

/** Builds an answer that writes these bytes unchanged, and then closes the connection if `end` is true. */
function raw(text: string, end: boolean): Answer {
  return (_seen, response: ServerResponse) => {
    response.socket?.write(text)
    if (end) response.socket?.end()
  }
}

const unknown = [{ status: 504, codes: ['ADP_OUTCOME_UNKNOWN'] }]
const unavailable = [{ status: 503, codes: ['ADP_UPSTREAM_UNAVAILABLE'] }]

describe('the adapter, when a client posts a batch', () => {
  it('posts each record to V3 once and returns one part for each record, in request order (service.md 4.2)', async () => {
    const { upstream, adapter } = await startWithV3()
    const records = [flatRecord(1, { MinutesLate: 7, Comment: 'café \u2028 \ud800' }), flatRecord(2)]
    const reply = await postBatch(adapter, batchOf(records))
    expect(reply.status).toBe(200)
    expect(readBatchReply(reply).map(({ contentId, status }) => [contentId, status])).toEqual([
      ['1', 201],
      ['2', 201],
    ])
    expect(readBatchReply(reply)[0]?.json).toEqual({
      '@odata.context': `${adapter.url}/sp-api-write-back-partner-live/V2/Attendance/$metadata#AttendanceRecords/$entity`,
      ExternalID: expect.stringMatching(/^eeeeeeee-0000-4000-8000-00000000000[01]$/) as unknown,
      Present: true,
      Absent: false,
      RecordedOn: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as unknown,
      ChangeProcessName: 'Markbridge',
      AttendableEventStart: null,
      RecordedBy: null,
      Learner: guid(1),
      AttendableEvent: guid(900_000),
      SchoolAttendanceCode: guid(800_000),
      MinutesLate: 7,
      Comment: 'café \u2028 \ud800',
      AttendanceHistorys: [],
    })
    expect(upstream.seen.map(({ method, url }) => `${method} ${url}`)).toEqual(
      Array(2).fill('POST /Attendance/V3/AttendanceRecords'),
    )
  })

  it('answers 503 for every record when V3 is stopped', async () => {
    const { upstream, adapter } = await startWithV3()
    await upstream.close()
    const parts = await postRecords(adapter, flatRecords(40))
    expect(failuresOf(parts)).toEqual(Array(40).fill(unavailable[0]))
  })

  const unclear: [name: string, answer: Answer][] = [
    ['is reset after it was read', reset],
    ['is reset within the headers', raw('HTTP/1.1 201 Crea', true)],
    ['gets no answer in time', () => undefined],
    ['gets a body that stalls', raw('HTTP/1.1 201 Created\r\nContent-Length: 900\r\n\r\n{"Ext', false)],
    ['gets a body that ends early', raw('HTTP/1.1 201 Created\r\nContent-Length: 900\r\n\r\n{"Ext', true)],
    ['gets a chunked body that ends early', raw('HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{"Ex', true)],
    ['gets a reply that is not HTTP', raw('SSH-2.0-odd\r\n\r\n', true)],
    ['gets 100 Continue and nothing more', raw('HTTP/1.1 100 Continue\r\n\r\n', false)],
    ['gets a 101', raw('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n', false)],
    ['gets 200 with HTML', replyWith(200, '<html>ok</html>', { 'Content-Type': 'text/html' })],
    ['gets 201 without a body', replyWith(201)],
    ['gets 204', replyWith(204)],
    ['gets 200 with broken JSON', replyWith(200, '{"ExternalID":"')],
    ['gets 200 with JSON that is not a record', replyWith(200, [1, 2])],
    ['gets 201 without an id', replyWith(201, { Present: true })],
    ['gets 201 with the zero guid', replyWith(201, { ExternalID: guid(0).replace('4000-8', '0000-0') })],
    ['gets 201 with more than a mebibyte', replyWith(201, { ExternalID: guid(5), Comment: 'x'.repeat(1_100_000) })],
    ['gets 201 for another learner', replyWith(201, { ExternalID: guid(5), Attendee: { ExternalID: guid(77) } })],
    ['gets 201 for another event', replyWith(201, { ExternalID: guid(5), Event: { ExternalID: guid(77) } })],
    ['gets 500', replyWith(500, { error: { code: 'x', message: 'y' } })],
    ['gets 502', replyWith(502, '<html>bad gateway</html>')],
    ['gets 504', replyWith(504)],
    ['gets 600', raw('HTTP/1.1 600 Odd\r\nContent-Length: 0\r\n\r\n', false)],
  ] // prettier-ignore
  it.each(unclear)(
    'reports the outcome of a record as unknown when the post to V3 %s',
    async (_name, answer) => {
      const { upstream, adapter } = await startWithV3(answer, { v3: quick })
      const parts = await postRecords(adapter, [flatRecord(1)])
      expect(failuresOf(parts)).toEqual(unknown)
      expect(upstream.seen.length).toBe(1)
      expect(adapter.events()).toContainEqual(
        expect.objectContaining({
          msg: 'batch answered',
          accepted: 0,
          refused: 0,
          notApplied: 0,
          unknown: 1,
        }),
      )
    },
  )

  const declined: [name: string, answer: Answer, code: string, status: number][] = [
    ['503', replyWith(503), 'ADP_UPSTREAM_UNAVAILABLE', 503],
    ['429', replyWith(429, { statusCode: 429, message: 'Rate limit is exceeded. Try again in 2 seconds.' }), 'ADP_UPSTREAM_UNAVAILABLE', 503],
    ['408', replyWith(408), 'ADP_UPSTREAM_UNAVAILABLE', 503],
    ['a 503 that is cut off', raw('HTTP/1.1 503 Busy\r\nContent-Length: 9\r\n\r\n{', true), 'ADP_UPSTREAM_UNAVAILABLE', 503],
    ['301', replyWith(301, '', { Location: '/elsewhere' }), 'ADP_UPSTREAM_PROTOCOL', 502],
    ['307', replyWith(307, '', { Location: 'http://127.0.0.1:1/' }), 'ADP_UPSTREAM_PROTOCOL', 502],
  ] // prettier-ignore
  it.each(declined)(
    'reports a record as not applied when V3 answers %s and no time is left for a retry',
    async (_name, answer, code, status) => {
      const { upstream, adapter } = await startWithV3(answer, onePartner({ v3: { budgetMs: 1_500 } }))
      const parts = await postRecords(adapter, [flatRecord(1)])
      expect(failuresOf(parts)).toEqual([{ status, codes: [code] }])
      expect(upstream.seen.map(({ url }) => url)).toEqual(['/Attendance/V3/AttendanceRecords'])
    },
  )

  const details = [
    { code: '', message: 'The event was not found.', target: 'Event' },
    { code: 'ATT_VAL_3', message: 'no such code', target: 'AttendanceCode' },
    { code: 'Z9', message: 'odd', target: null },
  ]
  const refusals: [name: string, answer: Answer, codes: string[]][] = [
    ['OData with details', replyWith(400, { error: { code: 'c', message: 'm', details } }), ['ATT_VAL_2', 'ATT_VAL_3', 'Z9']],
    ['OData without details', replyWith(409, { error: { code: 'CONFLICT', message: 'twice' } }), ['CONFLICT']],
    ['OData with an empty code', replyWith(400, { error: { code: '', message: 'bad' } }), ['ADP_UPSTREAM_REFUSED']],
    ['the gateway', replyWith(404, { statusCode: 404, message: 'Resource not found' }), ['ADP_UPSTREAM_REFUSED']],
    ['the V2 array', replyWith(400, [{ Message: 'm', ErrorCode: 'ATT_VAL_2' }, { Message: 'n', ErrorCode: 'ATT_VAL_3' }]), ['ATT_VAL_2', 'ATT_VAL_3']],
    ['HTML', replyWith(400, '<html>', { 'Content-Type': 'text/html' }), ['ADP_UPSTREAM_REFUSED']],
    ['an empty body', replyWith(422), ['ADP_UPSTREAM_REFUSED']],
    ['a body that breaks off', raw('HTTP/1.1 400 Bad\r\nContent-Length: 99\r\n\r\n{"er', true), ['ADP_UPSTREAM_REFUSED']],
  ] // prettier-ignore
  it.each(refusals)(
    'reports a rejection by V3 as 400 with one SequenceID (rejection in the form of %s; service.md 7)',
    async (_name, answer, codes) => {
      const { adapter } = await startWithV3(answer)
      const parts = await postRecords(adapter, [flatRecord(1)])
      expect(failuresOf(parts)).toEqual([{ status: 400, codes }])
      const entries = parts[0]?.json as { SequenceID: string; ResourceIdentifier: string }[]
      expect(new Set(entries.map(({ SequenceID }) => SequenceID)).size).toBe(1)
      expect(entries.map(({ ResourceIdentifier }) => ResourceIdentifier)).toEqual(codes.map(() => ''))
    },
  )

  it('still reports the outcomes of all other records when one record fails (batch-wire A5)', async () => {
    const { upstream, adapter } = await startWithV3((seen, response) => {
      if (seen.body.includes(guid(2)))
        return replyWith(400, { error: { code: 'Z1', message: 'm' } })(seen, response)
      if (seen.body.includes(guid(3))) return reset(seen, response)
      return echoRecord(seen, response)
    })
    const records = [flatRecord(1), flatRecord(2), flatRecord(3), '{"Present":', flatRecord(5)]
    const parts = await postRecords(adapter, records)
    expect(failuresOf(parts)).toEqual([
      { status: 201, codes: 'record' },
      { status: 400, codes: ['Z1'] },
      { status: 504, codes: ['ADP_OUTCOME_UNKNOWN'] },
      { status: 400, codes: ['ADP_JSON'] },
      { status: 201, codes: 'record' },
    ])
    expect(upstream.seen.length).toBe(4)
    expect(adapter.events().at(-1)).toEqual({
      msg: 'batch answered', durationMs: expect.any(Number) as unknown,
      partner: 'default', records: 5, changesets: 1, outcomesShown: true, unmappedFields: 0, convertedFields: 0, replayed: false, queuedMs: 0,
      accepted: 2, refused: 2, notApplied: 0, unknown: 1, reason: 'connectionLost',
    }) // prettier-ignore
  })

  it('posts over a new connection when V3 has closed an idle connection', async () => {
    const { upstream, adapter } = await startWithV3((seen, response) => {
      response.end(echoOf(seen))
      if (seen.index === 0) response.on('finish', () => response.socket?.end())
    })
    await postBatch(adapter, batchOf([flatRecord(1)]))
    const parts = await postRecords(adapter, [flatRecord(2)])
    expect(parts.map(({ status }) => status)).toEqual([201])
    expect(upstream.seen.length).toBe(2)
  })

  it('reports posted records as unknown, and posts no further record, when the budget ends', async () => {
    const upstream = await startUpstream(() => undefined)
    const adapter = await startAdapter(upstream.url, onePartner({ v3: { budgetMs: 400, concurrency: 3 } }))
    const parts = await postRecords(adapter, flatRecords(8))
    expect(failuresOf(parts)).toEqual([
      ...Array<unknown>(3).fill({ status: 504, codes: ['ADP_OUTCOME_UNKNOWN'] }),
      ...Array<unknown>(5).fill({ status: 503, codes: ['ADP_BUDGET_EXCEEDED'] }),
    ])
    expect(upstream.seen.length).toBe(3)
  })
})
