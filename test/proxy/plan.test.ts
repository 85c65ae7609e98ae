import { describe, expect, it } from 'vitest'

import type { Partner } from '../../src/proxy/partner.ts'
import { planBatch } from '../../src/proxy/plan.ts'
import { decodeBatch } from '../../src/v2/index.ts'
import { batchOf, flatRecord, guid } from '../support/batch-request.ts'

const at = '2026-06-10T10:00:00.000Z'
const partner: Partner = {
  id: 'acme',
  match: { any: true },
  layout: 'flat',
  dataEnvelope: false,
  msgtypeResponse: false,
  mismatch: 'post',
  mapping: {
    attendeeType: 'A',
    eventType: 'E',
    codeType: 'C',
    changeProcessName: 'Acme',
    unmappedFields: 'report',
  },
  reads: {
    wideRange: 'split',
    needsRecordedBy: true,
    unmarkedCodes: [],
    filterUpstream: true,
    histories: false,
  },
  bodyProfile: 'minimal',
  concurrency: 4,
  batch: undefined,
  budgetMs: 1_000,
  subscriptionKey: undefined,
  callsPerSecond: undefined,
  refuseOverBudget: false,
  tokens: undefined,
}

function planOf(
  records: readonly (object | string)[],
  own: Partial<Partner> = {},
): ReturnType<typeof planBatch> {
  const { headers, body } = batchOf(records)
  return planBatch(decodeBatch(Buffer.from(body), headers['Content-Type']), { ...partner, ...own }, at)
}

describe('planBatch', () => {
  it('decides what is posted, in the order of the batch', () => {
    const { records, unmappedFields } = planOf([
      flatRecord(1),
      '{"Present"',
      flatRecord(2, { Mood: 1, Other: 2 }),
    ])
    expect(unmappedFields).toBe(2)
    expect(records.map(({ record, faults }) => [record?.Attendee, faults?.map(({ code }) => code)])).toEqual([
      [{ ExternalID: guid(1), Type: 'A' }, undefined],
      [undefined, ['ADP_JSON']],
      [{ ExternalID: guid(2), Type: 'A' }, undefined],
    ])
    expect(records.map(({ answering }) => answering.contentId)).toEqual(['1', '2', '3'])
  })

  it('counts, and refuses, what no rule consumes, as the partner has it', () => {
    const mapping = { ...partner.mapping, unmappedFields: 'strict' } as const
    const { records } = planOf([flatRecord(1, { Mood: 1 }), flatRecord(2)], { mapping })
    expect(records.map(({ faults }) => faults?.[0]?.code)).toEqual(['ADP_UNMAPPED_FIELD', undefined])
  })

  it('gives one key to records of one learner and event, whatever the case of the guids', () => {
    const Learner = 'abcdefab-0000-4000-8000-000000000001'
    const records = [
      { Learner },
      { Learner: Learner.toUpperCase() },
      { Learner, AttendableEvent: guid(5) },
      {},
    ]
    const keys = planOf(records.map((fields) => flatRecord(1, fields))).records.map(({ key }) => key)
    expect(keys[0]).toBe(keys[1])
    expect(new Set(keys).size).toBe(3)
  })

  it('gives every record the time of receipt and the name of the process', () => {
    const { records } = planOf([flatRecord(1), flatRecord(2)])
    expect(records.map(({ record }) => [record?.RecordedOn, record?.ChangeProcessName])).toEqual(
      Array(2).fill([at, 'Acme']),
    )
  })
})
