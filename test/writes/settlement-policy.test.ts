import { describe, expect, it } from 'vitest'

import { type FollowUp, settlementOf } from '../../src/writes/settlement-policy.ts'
import type { PostOutcome } from '../../src/v3/index.ts'
import { guid } from '../support/batch-request.ts'
import { answering } from './planned-record.ts'

const reply = { ...answering, status: 400, json: '[1, 2]' }
const waiting: FollowUp = {
  outcomesShown: true,
  clientWaits: true,
  receivedMs: 1_000,
  nowMs: 2_000,
}
const refusal = (status: number, code?: string): PostOutcome => ({
  kind: 'refused',
  error: { status, form: 'odata', entries: [{ code, message: 'm', target: undefined }] },
})
const notApplied: PostOutcome = { kind: 'notApplied', reason: 'throttled', retryAfterMs: undefined }
const unknown: PostOutcome = { kind: 'unknown', reason: 'timeout' }
const kept = { position: 3, answer: '400 [1, 2]' }

describe('settlementOf', () => {
  const rows: [what: string, outcome: PostOutcome, followUp: Partial<FollowUp>, settled: object][] = [
    ['an accepted record', { kind: 'accepted', reply: { ExternalID: guid(5), RecordedOn: '2026-06-10T10:00:00Z' } }, {}, { state: 'confirmed', mark: { externalId: guid(5), recordedMs: Date.UTC(2026, 5, 10, 10) } }],
    ['a refused record', refusal(400, 'ATT_VAL_3'), {}, { state: 'refused', reason: 'ATT_VAL_3', deadLetter: false }],
    ['a refused record whose client got 200', refusal(400, 'ATT_VAL_2'), { outcomesShown: false }, { state: 'refused', reason: 'ATT_VAL_2', deadLetter: true }],
    ['a refusal whose code may be a value of the record', refusal(400, 'Jane Doe'), {}, { state: 'refused', reason: 'HTTP_400', deadLetter: false }],
    ['a denied record', refusal(403, 'AUTH_1'), {}, { state: 'notApplied', reason: 'AUTH_1', retry: 'resend' }],
    ['a denied record whose client got 200', refusal(401, 'AUTH_1'), { outcomesShown: false }, { state: 'parked', reason: 'AUTH_1', retry: 7_000 }],
    ['a denied record whose client got 200, after the retry deadline,', refusal(401, 'AUTH_1'), { outcomesShown: false, nowMs: 90_000_000 }, { state: 'notApplied', reason: 'AUTH_1', deadLetter: true }],
    ['a record that was not applied', notApplied, {}, { state: 'notApplied', reason: 'throttled', retry: 'resend' }],
    ['an unapplied record in the background', notApplied, { clientWaits: false }, { state: 'parked', reason: 'throttled', retry: 7_000 }],
    ['an unapplied record whose client got 200', notApplied, { outcomesShown: false, nowMs: 13_000 }, { state: 'parked', reason: 'throttled', retry: 18_000 }],
    ['an unapplied record after the retry deadline', notApplied, { clientWaits: false, nowMs: 90_000_000 }, { state: 'notApplied', reason: 'throttled', deadLetter: true }],
    ['an unknown outcome', unknown, {}, { state: 'unknown', reason: 'timeout', retry: 7_000, deadLetter: false }],
    ['an unknown outcome after five minutes', unknown, { nowMs: 301_000 }, { state: 'unknown', reason: 'timeout', retry: 316_000, deadLetter: false }],
    ['an unknown outcome after an hour', unknown, { nowMs: 3_601_000 }, { state: 'unknown', reason: 'timeout', retry: 3_781_000, deadLetter: false }],
    ['an unknown outcome after ten hours', unknown, { nowMs: 36_001_000 }, { state: 'unknown', reason: 'timeout', retry: 36_601_000, deadLetter: false }],
    ['an unknown outcome after the retry deadline', unknown, { nowMs: 90_000_000 }, { state: 'unknown', reason: 'timeout', retry: undefined, deadLetter: true }],
    ['a record that a newer mark overwrote', { kind: 'unknown', reason: 'overwritten' }, {}, { state: 'unknown', reason: 'overwritten', retry: undefined, deadLetter: true }],
    ['a record that a newer record of the journal superseded', { kind: 'unknown', reason: 'superseded' }, {}, { state: 'unknown', reason: 'superseded', superseded: true }],
  ] // prettier-ignore
  it.each(rows)('settles %s', (_what, outcome, followUp, settled) => {
    expect(settlementOf(3, outcome, reply, { ...waiting, ...followUp })).toEqual({ ...kept, ...settled })
  })
})
