import { describe, expect, it } from 'vitest'

import { createSlicing } from '../../src/http/slices.ts'
import type { StoredRecord } from '../../src/journal/index.ts'
import type { PartReply } from '../../src/v2/index.ts'
import {
  isPending,
  isRetryable,
  mayBeApplied,
  type Reply,
  settleStored,
  tallyOf,
  toReplyPart,
} from '../../src/writes/reply.ts'
import type { StoredRequest } from '../../src/writes/stored-request.ts'
import { guid } from '../support/batch-request.ts'
import { answering, plannedRecord, refusedRecord } from './planned-record.ts'
import { planOf } from './start-run.ts'

const texts = { context: 'http://x/$metadata#y', newId: () => 'new-id', dataEnvelope: false }
const accepted = { kind: 'accepted', reply: { ExternalID: guid(5) } } as const
const part = { contentId: '7', contentIdInHttp: false, changeset: 1 }

const failure = (code: string): unknown => [
  { Message: expect.any(String) as unknown, ErrorCode: code, ResourceIdentifier: '', SequenceID: 'new-id' },
]

describe('toReplyPart', () => {
  it('replaces the text of an error only if the partner configures a text for its code', () => {
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
    expect(messageOf('ATT_VAL_3')).toMatch(/SchoolAttendanceCode/)
    expect(messageOf('constructor')).toBe('of V3')
  })

  it('follows the Prefer and Accept headers of the record', () => {
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
})

const refused: StoredRecord = {
  position: 0,
  state: 'refused',
  answer: '503 []',
  reason: undefined,
  retry: undefined,
  superseded: false,
  attempts: 1,
}
const plan = planOf([plannedRecord(1), refusedRecord])
const unseen = { ...plan, outcomesShown: false }
const storedRequest: StoredRequest = {
  request: {
    kind: 'batch',
    contentType: undefined,
    serviceHosts: undefined,
    context: 'http://x/$metadata',
    layout: 'flat',
    dataEnvelope: false,
    msgtypeResponse: false,
    prefer: '',
    accept: '',
  },
  replyId: guid(1),
  sender: undefined,
  body: Buffer.alloc(0),
}

const replyInto = (parts: PartReply[]): Reply => ({
  setPart: (_index, part) => parts.push(part),
  begin: () => undefined,
  isStatusSent: () => false,
  end: () => Promise.resolve(),
})

describe('a record in the journal', () => {
  it.each([
    ['is open', { state: 'open' }, { held: true, left: true, retryable: false, unseen: false }],
    ['is unknown and due', { state: 'unknown', retry: 5 }, { held: true, left: true, retryable: true, unseen: false }],
    ['was denied with its batch', { state: 'notApplied', retry: 'resend' }, { held: false, left: false, retryable: true, unseen: true }],
    ['was superseded while parked', { state: 'parked', retry: 5, superseded: true }, { held: false, left: false, retryable: false, unseen: false }],
    ['is confirmed', { state: 'confirmed', retry: 5 }, { held: true, left: false, retryable: false, unseen: false }],
    ['comes from an unreadable part', { state: 'notApplied', position: 1, retry: 'resend' }, { held: false, left: false, retryable: false, unseen: false }],
  ] as const)('has the expected results of isPending, mayBeApplied and isRetryable if it %s', (_what, own, expected) => {
    const record: StoredRecord = { ...refused, ...own }
    expect({
      held: isPending(record),
      left: mayBeApplied(record),
      retryable: isRetryable(record, plan),
      unseen: isRetryable(record, unseen),
    }).toEqual(expected)
  }) // prettier-ignore

  it.each([
    ['refused with a stored answer', {}, 503, undefined],
    ['superseded before it was applied', { superseded: true }, 409, 'ADP_SUPERSEDED'],
    ['superseded while parked', { state: 'parked', superseded: true }, 409, 'ADP_SUPERSEDED'],
    ['superseded while its outcome was unknown', { state: 'unknown', superseded: true, answer: '504 []' }, 409, 'ADP_SUPERSEDED_UNKNOWN'],
    ['superseded after its client got a 409', { state: 'unknown', superseded: true, answer: '409 []' }, 409, undefined],
    ['parked, so that recovery may still post it', { state: 'parked', retry: 5 }, 504, 'ADP_OUTCOME_UNKNOWN'],
    ['parked without a further retry', { state: 'parked', answer: '503 []' }, 503, undefined],
    ['denied with its whole batch', { state: 'notApplied', answer: undefined, retry: 'resend' }, 503, undefined],
  ] as const)('becomes a reply part with status $2 if it was %s', async (_what, own, status, code) => {
    const parts: PartReply[] = []
    const records: StoredRecord[] = [
      { ...refused, ...own },
      { ...refused, position: 7 },
    ]
    await settleStored(storedRequest, records, plan, replyInto(parts), createSlicing().open())
    expect(parts.map((part) => part.status)).toEqual([status])
    if (code !== undefined) expect(parts[0]?.json).toContain(code)
  }) // prettier-ignore

  it('becomes the same reply part after another record of its batch was superseded', async () => {
    const both = planOf([plannedRecord(1), plannedRecord(2)])
    const last: StoredRecord = { ...refused, position: 1, superseded: true }
    const partsOf = async (first: StoredRecord): Promise<PartReply | undefined> => {
      const parts: PartReply[] = []
      await settleStored(storedRequest, [first, last], both, replyInto(parts), createSlicing().open())
      return parts[1]
    }
    expect(await partsOf({ ...refused, superseded: true })).toEqual(await partsOf(refused))
  })
})

it('tallyOf counts stored records by their outcome', () => {
  const records: StoredRecord[] = [
    { ...refused, state: 'confirmed' },
    { ...refused, state: 'parked' },
    { ...refused, state: 'notApplied', retry: 'resend' },
    refused,
    { ...refused, state: 'unknown' },
  ]
  const batch = {
    batch: 1,
    partner: 'p',
    owner: 'o',
    receivedMs: 0,
    payload: undefined,
    credentials: undefined,
  }
  expect(tallyOf({ ...batch, records })).toEqual({ accepted: 1, notApplied: 2, refused: 1, unknown: 1 })
})
