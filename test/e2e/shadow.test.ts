import { describe, expect, it, onTestFinished, vi } from 'vitest'

import { createSandbox } from '../../src/sandbox/index.ts'
import { batchOf, batchPath, type BatchText, flatRecord } from '../support/batch-request.ts'
import { readSamples } from '../support/read-samples.ts'
import { replyWith, startUpstream } from '../support/scripted-upstream.ts'
import { type Adapter, startAdapter } from '../support/start-adapter.ts'
import { journalFile } from './support/journal-file.ts'

const partners = [{ id: 'acme', match: { any: true }, stage: 'shadow' }]
const sandboxHeaders = { 'Ocp-Apim-Subscription-Key': 'sandbox', Authorization: 'bearer sandbox' }
const path = '/x/V2/Attendance/AttendanceRecords'

/** The counters of `shadow` that are not 0, without their common parts. */
async function countsOf(adapter: Adapter): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const [name, value] of await readSamples(adapter)) {
    const [, what = '', label] =
      /^markbridge_stage_shadow_(\w+)_total\{partner="acme"(?:,\w+="(\w+)")?\}$/.exec(name) ?? []
    if (what !== '' && value > 0) counts[label === undefined ? what : `${what} ${label}`] = value
  }
  return counts
}

const startAt = (v2: string, v3: string): Promise<Adapter> =>
  startAdapter(v3, { v2: { baseUrl: v2 }, partners, journal: journalFile() })

const post = (adapter: Adapter, { headers, body }: BatchText) =>
  adapter.request('POST', batchPath, { headers: { ...sandboxHeaders, ...headers }, body })

describe('what V2 serves at shadow', () => {
  it('is decoded and translated as if V3 had served it, and V3 is sent nothing', async () => {
    const sandbox = createSandbox({ v2Port: 0 })
    const { v2Url } = await sandbox.listen()
    onTestFinished(() => sandbox.close())
    const v3 = await startUpstream()
    const adapter = await startAt(v2Url, v3.url)
    const batch = batchOf([
      flatRecord(1),
      flatRecord(2, { Homework: 'x' }),
      flatRecord(3, { Present: 'perhaps' }),
    ])
    expect((await post(adapter, batch)).status).toBe(200)
    const filter =
      'AttendableEventStart%20ge%202026-01-01T00:00:00Z%20and%20AttendableEventStart%20lt%202026-02-01T00:00:00Z'
    await adapter.request('GET', `${path}?$filter=${filter}`)
    await vi.waitFor(async () =>
      expect(await countsOf(adapter)).toEqual({
        offered: 2,
        taken: 2,
        records: 3,
        'unread record': 1,
        'unread field': 1,
      }),
    )
    expect(v3.seen).toEqual([])
  })

  it('is counted where it cannot be read: the request, or the reply', async () => {
    const v2 = await startUpstream(replyWith(200, 'no part at all', { 'Content-Type': 'text/plain' }))
    const adapter = await startAt(v2.url, v2.url)
    await post(adapter, batchOf([flatRecord(1)]))
    await adapter.request('POST', batchPath, { body: 'no batch', headers: { 'Content-Type': 'text/x' } })
    await adapter.request('GET', `${path}?$filter=Learner%20like%20x`)
    await vi.waitFor(async () =>
      expect(await countsOf(adapter)).toEqual({
        offered: 3,
        taken: 3,
        records: 1,
        'unread request': 2,
        'unread reply': 2,
      }),
    )
  })

  it('is not offered at legacy', async () => {
    const v2 = await startUpstream(replyWith(200, { value: [] }))
    const adapter = await startAdapter(v2.url, {
      v2: { baseUrl: v2.url },
      partners: [{ ...partners[0], stage: 'legacy' }],
      journal: journalFile(),
    })
    await post(adapter, batchOf([flatRecord(1)]))
    await adapter.request('GET', path)
    expect(await countsOf(adapter)).toEqual({})
  })
})
