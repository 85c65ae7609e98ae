import { expect, it } from 'vitest'

import { createSlicing } from '../../src/http/slices.ts'
import { replyBytes } from '../../src/proxy/write-handler.ts'
import { defaultBatchLimits } from '../../src/v2/index.ts'
import { planWrites } from '../../src/writes/plan.ts'
import { partner as partnerOf } from '../partners/partner.ts'
import { batchOf, flatRecord } from '../support/batch-request.ts'
import { echoRecord, startUpstream } from '../support/scripted-upstream.ts'
import { onePartner, startAdapter } from '../support/start-adapter.ts'

const unmapped = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`Own${at}`, 1]))

it.each([
  ['records that V3 accepts', (n: number) => flatRecord(n)],
  ['records without any member', () => ({})],
  ['records with twenty members that V3 does not have', (n: number) => flatRecord(n, unmapped)],
])('replyBytes reserves at least the size of the reply for a batch of %s', async (_what, recordOf) => {
  const { headers, body } = batchOf(Array.from({ length: 50 }, (_, n) => recordOf(n)))
  const { url } = await startUpstream(echoRecord)
  const adapter = await startAdapter(url, onePartner({ unmappedFields: 'strict' }))
  const reply = await adapter.request('POST', '/V2/Attendance/$batch', { headers, body })
  expect(reply.status).toBe(200)
  const context = `${adapter.url}/V2/Attendance/$metadata#AttendanceRecords/$entity`
  const request = { kind: 'batch', contentType: headers['Content-Type'], serviceHosts: [], context, layout: 'flat', dataEnvelope: false, msgtypeResponse: false, prefer: '', accept: '' } as const // prettier-ignore
  const plain = partnerOf('acme', { any: true })
  const partner = { ...plain, mapping: { ...plain.mapping, unmappedFields: 'strict' as const } }
  const plan = await planWrites(
    request,
    Buffer.from(body),
    partner,
    0,
    defaultBatchLimits,
    createSlicing().open(),
  )
  expect(replyBytes(request, plan)).toBeGreaterThanOrEqual(reply.text.length)
})
