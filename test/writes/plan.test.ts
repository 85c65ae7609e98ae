import { describe, expect, it } from 'vitest'

import type { Partner } from '../../src/partners/partner.ts'
import { createSlicing } from '../../src/http/slices.ts'
import { type Plan, planWrites } from '../../src/writes/plan.ts'
import type { WriteRequest } from '../../src/writes/stored-request.ts'
import { defaultBatchLimits } from '../../src/v2/index.ts'
import { partner as partnerOf } from '../partners/partner.ts'
import { batchOf, flatRecord, guid } from '../support/batch-request.ts'

const at = '2026-06-10T10:00:00.000Z'
const plain = partnerOf('acme', { any: true })
const mapping = {
  eventType: 'E',
  codeType: 'C',
  changeProcessName: 'Acme',
  unmappedFields: 'report',
} as const
const partner: Partner = { ...plain, mapping }

const slices = createSlicing().open()

const request: WriteRequest = {
  kind: 'batch',
  contentType: undefined,
  serviceHosts: [],
  context: 'http://x/$metadata#y',
  layout: 'flat',
  dataEnvelope: false,
  msgtypeResponse: false,
  prefer: '',
  accept: '',
}

function planOf(records: readonly (object | string)[], own: Partial<Partner> = {}): Promise<Plan> {
  const { headers, body } = batchOf(records)
  return planWrites(
    { ...request, contentType: headers['Content-Type'] },
    Buffer.from(body),
    { ...partner, ...own },
    Date.parse(at),
    defaultBatchLimits,
    slices,
  )
}

describe('planWrites', () => {
  it('returns the records to post and the faults in the order of the batch', async () => {
    const { records, unmappedFields } = await planOf([
      flatRecord(1),
      '{"Present"',
      flatRecord(2, { Mood: 1, Other: 2 }),
    ])
    expect(unmappedFields).toBe(2)
    expect(records.map(({ record, faults }) => [record?.Attendee, faults?.map(({ code }) => code)])).toEqual([
      [{ ExternalID: guid(1), Type: 'Learner.Identifier' }, undefined],
      [undefined, ['ADP_JSON']],
      [{ ExternalID: guid(2), Type: 'Learner.Identifier' }, undefined],
    ])
    expect(records.map(({ answering }) => answering.contentId)).toEqual(['1', '2', '3'])
  })

  it('refuses a record with an unmapped field if the partner is strict', async () => {
    const strict = { mapping: { ...mapping, unmappedFields: 'strict' } } as const
    const { records } = await planOf([flatRecord(1, { Mood: 1 }), flatRecord(2)], strict)
    expect(records.map(({ faults }) => faults?.[0]?.code)).toEqual(['ADP_UNMAPPED_FIELD', undefined])
  })

  it('gives records of the same learner and event the same key, whatever the letter case of the GUIDs', async () => {
    const Learner = 'abcdefab-0000-4000-8000-000000000001'
    const records = [
      { Learner },
      { Learner: Learner.toUpperCase() },
      { Learner, AttendableEvent: guid(5) },
      {},
    ]
    const plan = await planOf(records.map((fields) => flatRecord(1, fields)))
    const keys = plan.records.map(({ key }) => key)
    expect(keys[0]).toBe(keys[1])
    expect(new Set(keys).size).toBe(3)
  })

  it('sets the time of receipt and the change process name in every record', async () => {
    const { records } = await planOf([flatRecord(1), flatRecord(2)])
    expect(records.map(({ record }) => [record?.RecordedOn, record?.ChangeProcessName])).toEqual(
      Array(2).fill([at, 'Acme']),
    )
  })

  it('returns the ids of a batch, but none for a single record', async () => {
    const { headers, body } = batchOf([flatRecord(1)], { batch: 'b 1', changeset: 'c', boundary: '"b 1"' })
    const own = { ...request, contentType: headers['Content-Type'] }
    const plan = await planWrites(own, Buffer.from(body), partner, 0, defaultBatchLimits, slices)
    expect(plan.ids).toEqual({
      boundary: 'b 1',
      envelope: ['b 1', 'c'],
    })
    const single = await planWrites(
      { ...request, kind: 'record' },
      Buffer.from(JSON.stringify(flatRecord(3))),
      partner,
      Date.parse(at),
      defaultBatchLimits,
      slices,
    )
    expect(single).toMatchObject({ ids: undefined, outcomesShown: true, changesets: 0 })
    expect(single.records[0]?.record?.Attendee.ExternalID).toBe(guid(3))
  })

  it('refuses a single record that is not UTF-8', async () => {
    const { records } = await planWrites(
      { ...request, kind: 'record' },
      Buffer.from([0xff]),
      partner,
      0,
      defaultBatchLimits,
      slices,
    )
    expect(records[0]?.faults?.[0]?.code).toBe('ADP_CHARSET')
  })
})
