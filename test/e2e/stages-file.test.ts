import { describe, expect, it } from 'vitest'

import { replyWith, startUpstream } from '../support/scripted-upstream.ts'
import { startAdapter } from '../support/start-adapter.ts'

const path = '/x/V2/Attendance/AttendanceRecords'
const v2Reply = replyWith(201, { from: 'V2' })
const v3Reply = replyWith(200, { from: 'V3' })

describe('the stage in the configuration file', () => {
  it("sends V2 requests to V2 with the client's own credentials at legacy, and V3 paths to V3", async () => {
    const [v2, v3] = [await startUpstream(v2Reply), await startUpstream(v3Reply)]
    const partner = { id: 'acme', match: { any: true }, stage: 'legacy', v2: { baseUrl: v2.url } }
    const adapter = await startAdapter(v3.url, { partners: [partner] })
    const write = await adapter.request('POST', path, { body: 'no JSON at all' })
    const headers = { 'Ocp-Apim-Subscription-Key': '', Authorization: '' }
    const read = await adapter.request('GET', `${path}?$filter=x`, { headers })
    const other = await adapter.request('GET', '/x/V2/Attendance/Other')
    const own = await adapter.request('GET', '/V1/Lookup/Learner/Houses')
    expect([write, read, other, own].map(({ status, text }) => [status, text])).toEqual([
      [201, '{"from":"V2"}'],
      [201, '{"from":"V2"}'],
      [201, '{"from":"V2"}'],
      [200, '{"from":"V3"}'],
    ])
    expect(v2.seen.map(({ method, url, body }) => [method, url, body])).toEqual([
      ['POST', path, 'no JSON at all'],
      ['GET', `${path}?$filter=x`, ''],
      ['GET', '/x/V2/Attendance/Other', ''],
    ])
  })

  it('causes a configuration error if it is legacy and V2 has no address', async () => {
    const partner = { id: 'acme', match: { any: true }, stage: 'legacy' }
    await expect(startAdapter('http://127.0.0.1:1', { partners: [partner] })).rejects.toMatchObject({
      code: 'ADP_CONFIGURATION',
      details: [{ target: 'partners[0].stage' }],
    })
  })
})
