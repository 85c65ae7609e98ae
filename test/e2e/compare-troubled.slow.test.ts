import { describe, expect, it } from 'vitest'

import type { App } from '../../src/index.ts'
import { sandboxHeaders } from '../sandbox/start-sandbox.ts'
import { batchOf, postBatch } from '../support/batch-request.ts'
import { freePort } from '../support/free-port.ts'
import { type Answer, replyWith, startUpstream } from '../support/scripted-upstream.ts'
import { startFaces } from './support/compared-faces.ts'
import { startCompared } from './support/compared-partner.ts'

const RECORDS = 3
const GUID = /[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}/gi

const v2Reply = [
  '--batchresponse_1',
  'Content-Type: application/http',
  'Content-Transfer-Encoding: binary',
  'Content-ID: 1',
  '',
  'HTTP/1.1 201 Created',
  'Content-Type: application/json',
  '',
  '{"ExternalID":"00000000-0000-4000-8000-0000000000aa","Present":true}',
  '--batchresponse_1--',
  '',
].join('\r\n')

const troubles: [string, Answer | 'dead'][] = [
  ['unreachable', 'dead'],
  ['stalled', () => undefined],
  ['slow', (_seen, response) => void setTimeout(() => response.writeHead(200).end('{"value":[]}'), 300)],
  ['answering 429', replyWith(429, '', { 'Retry-After': '60' })],
]

/** Returns how many checks were offered, and how many were compared, dropped or skipped. */
async function balanceOf(app: App): Promise<{ offered: number; ended: number }> {
  const metrics = (await app.metrics()) as { name: string; values: { value: number }[] }[]
  const sum = (word: string): number =>
    metrics
      .filter(({ name }) => name === `markbridge_compare_${word}_total`)
      .flatMap(({ values }) => values)
      .reduce((all, { value }) => all + value, 0)
  return { offered: sum('offered'), ended: sum('compared') + sum('dropped') + sum('skipped') }
}

describe('a client whose exchanges are compared', () => {
  it.each(troubles)('gets the same bytes as without comparison while V3 is %s', async (_name, trouble) => {
    const { mark } = await startFaces()
    const v2 = await startUpstream(
      replyWith(200, v2Reply, { 'Content-Type': 'multipart/mixed; boundary=batchresponse_1', Date: 'x' }),
    )
    const v3 = trouble === 'dead' ? undefined : await startUpstream(trouble)
    const v3Url = v3?.url ?? `http://127.0.0.1:${await freePort()}`
    const replies: unknown[] = []
    for (const percent of [0, 100]) {
      const { adapter } = await startCompared(v2.url, v3Url, { compare: { percent, settleMs: 100 } })
      for (let count = 0; count < RECORDS; count += 1) {
        const { status, headers, text } = await postBatch(adapter, batchOf([mark(count)]), sandboxHeaders)
        replies.push([status, headers, text])
      }
      if (percent === 0) continue
      // Closing the adapter also counts the exchanges that still wait for comparison.
      await adapter.app.close()
      expect(await balanceOf(adapter.app)).toEqual({ offered: RECORDS, ended: RECORDS })
    }
    expect(replies.slice(RECORDS)).toEqual(replies.slice(0, RECORDS))
    expect(v3?.seen.filter(({ method }) => method !== 'GET') ?? []).toEqual([])
  })
})

describe('a comparison while V3 serves', () => {
  it('reads marks back on V2, and compares the answers of the adapter to reads with the answers of V2', async () => {
    const { v3Url, v2Url, mark, samples, faces } = await startFaces()
    const choices = { stage: 'v3', check: { v2: 100 }, compare: { settleMs: 200 } }
    const { adapter, compared, settled } = await startCompared(v2Url, v3Url, choices)
    const { text } = await postBatch(
      adapter,
      batchOf([mark(0), mark(1, { Comment: 'bus' }), mark(2, { SchoolAttendanceCode: samples.events[0] })]),
      sandboxHeaders,
    )
    expect(text.match(GUID)?.length).toBeGreaterThan(3)
    const filter = encodeURIComponent(`AttendableEvent eq ${samples.events[0] ?? ''}`)
    await adapter.request('GET', `/x/V2/Attendance/AttendanceRecords?$filter=${filter}`, {
      headers: sandboxHeaders,
    })
    await settled(2)
    const seen = compared.map(({ check, served, records }) => [
      check,
      served,
      [...new Set(records.map(({ verdict }) => verdict))].sort().join(),
    ])
    expect(seen.sort()).toEqual([
      ['answers', 'v3', 'equivalent,same'],
      ['readBack', 'v3', 'equivalent'],
    ])
    expect(await faces()).toEqual(['V3', 'V3'])
  })

  it('ends with the verdict unknown when V2 is unreachable', async () => {
    const { v3Url, mark } = await startFaces()
    const choices = { stage: 'v3', check: { v2: 100 }, compare: { settleMs: 50 } }
    const { adapter, compared, settled } = await startCompared(
      `http://127.0.0.1:${await freePort()}`,
      v3Url,
      choices,
    )
    await postBatch(adapter, batchOf([mark(0)]), sandboxHeaders)
    await settled(1)
    expect(compared.flatMap(({ records }) => records.map(({ verdict }) => verdict))).toEqual(['unknown'])
  })
})
