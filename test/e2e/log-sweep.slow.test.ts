import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

import { describe, expect, it } from 'vitest'

import { Secret } from '../../src/config/index.ts'
import { batchOf, batchPath, flatRecord, postBatch } from '../support/batch-request.ts'
import { exchange } from '../support/raw-client.ts'
import { type Answer, echoRecord, replyWith, startUpstream } from '../support/scripted-upstream.ts'
import { type Adapter, onePartner, startAdapter, startWithV3 } from '../support/start-adapter.ts'
import { journalFile } from './support/journal-file.ts'

/** Markers that must never be logged. Each value of a learner, a mark or a client in the requests and answers below contains a marker. */
const learner = 'feedfeed-0000-4000-8000-00000000feed'
const event = 'beefbeef-0000-4000-8000-00000000beef'
const code = 'cafecafe-0000-4000-8000-00000000cafe'
const markers = [learner, event, code, 'HUSH', 'hush']

const record = flatRecord(1, {
  Learner: learner,
  AttendableEvent: event,
  SchoolAttendanceCode: code,
  Comment: 'HUSH comment',
  HUSH_member: 'HUSH value',
  MinutesLate: 5,
})
const hushed = {
  'Ocp-Apim-Subscription-Key': 'HUSH-key',
  Authorization: 'bearer HUSH-token',
  'X-Hush': 'HUSH',
  Cookie: 'a=HUSH',
}
const batch = batchOf([record, { ...record, MinutesLate: 'HUSH' }, '{"HUSH'], {
  inner: ['X-Other: HUSH', 'Authorization: bearer HUSH'],
})
const echoError = `Learner ${learner} was not found. HUSH`

/** Every kind of answer from V3. Every answer with content contains markers. */
const answers: [name: string, answer: Answer][] = [
  ['201', echoRecord],
  ['201 for another record', replyWith(201, { ExternalID: event, Attendee: { ExternalID: code } })],
  ['200 with HTML', replyWith(200, '<html>HUSH</html>')],
  ...[400, 401, 403, 404, 429, 500, 503].map((status): [string, Answer] => [`${status} in OData form`, replyWith(status, { error: { code: 'HUSH', message: echoError, target: learner } })]),
  ['401 in the form of the gateway', replyWith(401, { statusCode: 401, message: echoError })],
  ['400 with a V2 error array', replyWith(400, [{ Message: echoError, ErrorCode: 'HUSH', ResourceIdentifier: learner }])],
  ['302', replyWith(302, 'HUSH', { Location: `/HUSH/${learner}` })],
  ['a reset', (_seen, response) => void response.socket?.resetAndDestroy()],
  ['nothing', () => undefined],
  ['bytes that are not HTTP', (_seen, response) => void response.socket?.end('HUSH\r\n\r\n')],
  ['a reply that breaks off', (_seen, response) => void response.socket?.end(`HTTP/1.1 200 HUSH\r\nContent-Length: 99\r\nX: ${learner}\r\n\r\nHUSH`)],
] // prettier-ignore

function sweep(adapter: Adapter): void {
  const log = adapter.log.join('')
  expect(adapter.log.length).toBeGreaterThan(1)
  for (const marker of markers) expect(log).not.toContain(marker)
}

describe('the log', () => {
  it.each(answers)(
    'contains no value of a batch, a record or a passed-through request if V3 answers with %s',
    async (_name, answer) => {
      const { adapter } = await startWithV3(answer, {
        v3: { timeouts: { connectMs: 500, headersMs: 100, bodyMs: 100 } },
        ...onePartner({ v3: { subscriptionKey: new Secret('hush-v3-key'), budgetMs: 1_500 } }),
      })
      await postBatch(adapter, batch, hushed)
      await adapter.request('POST', '/V2/Attendance/AttendanceRecords', {
        headers: hushed,
        body: JSON.stringify(record),
      })
      for (const method of ['GET', 'PATCH'] as const) {
        const path = `/V3/LearnerPersonals(${learner})?$filter=x%20eq%20'HUSH'`
        await adapter.request(method, path, { headers: hushed, body: '"HUSH"' }).catch(() => undefined) // the reply may break off
      }
      sweep(adapter)
    },
  )

  it('contains no value of a rejected request', async () => {
    const { upstream, adapter } = await startWithV3(echoRecord, { limits: { maxBodyBytes: 5_000 } })
    const { body } = batch
    const refused: [path: string, headers: object, body: string][] = [
      [`/HUSH/${batchPath}`, { 'Content-Type': 'text/HUSH' }, body],
      [batchPath, { 'Content-Type': 'multipart/mixed; boundary=HUSH; boundary=HUSH' }, body],
      [batchPath, batch.headers, body.slice(0, -9)],
      [batchPath, batch.headers, body.replaceAll('Content-Type:', 'HUSH')],
      [batchPath, batch.headers, 'HUSH'.repeat(2_000)],
      [batchPath, { 'Content-Encoding': 'gzip' }, 'HUSH'],
      [batchPath, { Authorization: 'HUSH' }, body],
    ]
    for (const [path, headers, sent] of refused)
      await adapter.request('POST', path, { headers: { ...hushed, ...headers }, body: sent })
    for (const path of ['/HUSH', '/V3/%zzHUSH']) await adapter.request('GET', path, { headers: hushed })
    await exchange(
      adapter.port,
      'POST /HUSH HTTP/1.1\r\nHost: HUSH\r\nHost: HUSH\r\nConnection: close\r\n\r\n',
    )
    await exchange(adapter.port, 'HUSH\r\n\r\n')
    expect(adapter.events().filter(({ msg }) => msg === 'request refused').length).toBe(10)
    expect(upstream.seen).toEqual([])
    sweep(adapter)
  })

  it('contains no value of a request when V3 is unreachable', async () => {
    const adapter = await startAdapter('http://127.0.0.1:1')
    await postBatch(adapter, batch, hushed)
    await adapter.request('PATCH', `/V3/LearnerPersonals(${learner})`, { headers: hushed, body: 'HUSH' })
    sweep(adapter)
  })
})

describe('an encrypted journal', () => {
  it.each(answers)(
    'contains no value of a request in its files or file names if V3 answers with %s',
    async (_name, answer) => {
      const upstream = await startUpstream(answer)
      const journal = journalFile({ encrypted: true })
      const adapter = await startAdapter(upstream.url, {
        journal,
        listen: { port: 0, metrics: 'any' },
        v3: { timeouts: { connectMs: 500, headersMs: 100, bodyMs: 100 } },
        ...onePartner({ v3: { budgetMs: 1_500 } }),
      })
      await postBatch(adapter, batch, hushed)
      await postBatch(
        adapter,
        { ...batch, headers: { 'Content-Type': 'multipart/mixed; boundary=batch_other' } },
        hushed,
      )
      const metrics = await adapter.request('GET', '/metrics')
      expect(metrics.text).toContain('markbridge_')
      await adapter.app.close()
      const folder = dirname(journal.url.slice('sqlite:'.length))
      const files = readdirSync(folder)
      const bytes = files.map((name) => `${name} ${readFileSync(join(folder, name), 'latin1')}`)
      expect(bytes.join('').length).toBeGreaterThan(10_000)
      for (const text of [metrics.text, ...bytes])
        for (const marker of markers) expect(text.includes(marker)).toBe(false)
      sweep(adapter)
    },
  )
})
