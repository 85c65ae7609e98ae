import { describe, expect, it } from 'vitest'

import { toFaultPart, toReplyPart } from '../../src/writes/reply.ts'
import { guid } from '../support/batch-request.ts'
import { answering, plannedRecord, refusedRecord } from './planned-record.ts'

const texts = { context: 'http://x/$metadata#y', newId: () => 'new-id', dataEnvelope: false }
const accepted = { kind: 'accepted', reply: { ExternalID: guid(5) } } as const
const part = { contentId: '7', contentIdInHttp: false, changeset: 1 }

/** The array of a failed record. */
const failure = (code: string): unknown => [
  { Message: expect.any(String) as unknown, ErrorCode: code, ResourceIdentifier: '', SequenceID: 'new-id' },
]

describe('settleRecord', () => {
  it('batch-wire A4: answers an accepted record with 201 and the flat record', () => {
    const reply = toReplyPart(plannedRecord(1), accepted, texts)
    expect(reply).toMatchObject({ ...part, status: 201 })
    expect(JSON.parse(reply.json ?? '')).toMatchObject({
      '@odata.context': texts.context,
      ExternalID: guid(5),
      Learner: guid(1),
    })
  })

  it('puts the flat record into the envelope of a partner with dataEnvelope, and no error', () => {
    const enveloping = { ...texts, dataEnvelope: true }
    const { json: plain } = toReplyPart(plannedRecord(1), accepted, texts)
    expect(toReplyPart(plannedRecord(1), accepted, enveloping).json).toBe(`{"d":${plain}}`)
    const failed = toReplyPart(plannedRecord(1), { kind: 'unknown', reason: 'timeout' }, enveloping)
    expect(JSON.parse(failed.json ?? '')).toEqual(failure('ADP_OUTCOME_UNKNOWN'))
    const fault = toFaultPart(refusedRecord, enveloping)
    expect(JSON.parse(fault.json ?? '')).toEqual(failure('ADP_FIELD'))
  })

  it('words an error of the service as the partner is configured, by its own codes only', () => {
    const errorMessages = { ATT_VAL_2: 'No such event.' }
    const refusal = (code: string) =>
      ({
        kind: 'refused',
        error: { status: 400, form: 'array', entries: [{ code, message: 'of V3', target: undefined }] },
      }) as const
    const messageOf = (code: string): unknown => {
      const { json = '' } = toReplyPart(plannedRecord(1), refusal(code), { ...texts, errorMessages })
      return (JSON.parse(json) as { Message: unknown }[])[0]?.Message
    }
    expect(messageOf('ATT_VAL_2')).toBe('No such event.')
    expect(messageOf('ATT_VAL_3')).toBe('The SchoolAttendanceCode does not exist.')
    expect(messageOf('constructor')).toBe('of V3')
  })

  it('answers as the record asked', () => {
    const planned = plannedRecord(1)
    const minimal = { ...planned, answering: { ...answering, prefersMinimal: true } }
    expect(toReplyPart(minimal, accepted, texts)).toMatchObject({ ...part, status: 204, json: undefined })
    const none = { ...planned, answering: { ...answering, metadata: 'none' as const, contentIdInHttp: true } }
    const reply = toReplyPart(none, accepted, texts)
    expect(reply).toMatchObject({ contentIdInHttp: true, status: 201 })
    expect(reply.json).not.toContain('@odata')
    const failed = toReplyPart(minimal, { kind: 'unknown', reason: 'timeout' }, texts)
    expect([failed.status, JSON.parse(failed.json ?? '')]).toEqual([504, failure('ADP_OUTCOME_UNKNOWN')])
  })

  it.each([
    [{ kind: 'unknown', reason: 'connectionLost' }, 504, 'ADP_OUTCOME_UNKNOWN'],
    [{ kind: 'notApplied', reason: 'budget', retryAfterMs: undefined }, 503, 'ADP_BUDGET_EXCEEDED'],
    [
      { kind: 'refused', error: { status: 422, form: 'unreadable', entries: [] } },
      400,
      'ADP_UPSTREAM_REFUSED',
    ],
  ] as const)('tells %j as %i %s', (outcome, status, code) => {
    const reply = toReplyPart(plannedRecord(1), outcome, texts)
    expect([reply.status, JSON.parse(reply.json ?? '')]).toEqual([status, failure(code)])
  })
})

describe('settleFault', () => {
  it.each([
    ['ADP_FIELD', 400],
    ['ADP_JSON', 400],
    ['ADP_METHOD', 405],
  ] as const)('tells %s as %i', (code, status) => {
    const reply = toFaultPart({ ...refusedRecord, faults: [{ code, message: 'm' }] }, texts)
    expect(reply).toMatchObject({ ...part, status })
    expect(JSON.parse(reply.json ?? '')).toEqual(failure(code))
  })

  it('batch-wire 5: tells every fault of a record with one SequenceID', () => {
    const faults = [{ code: 'ADP_FIELD', message: 'a' }, { code: 'ADP_UNMAPPED_FIELD', message: 'b' }] as const // prettier-ignore
    const { json } = toFaultPart({ ...refusedRecord, faults }, texts)
    expect(JSON.parse(json ?? '')).toEqual([failure('ADP_FIELD'), failure('ADP_UNMAPPED_FIELD')].flat())
  })
})
