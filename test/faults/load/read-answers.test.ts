import { expect, test } from 'vitest'

import { readAnswers, type WholeReply } from './read-answers.ts'

const record = {
  ExternalID: 'id',
  Learner: 'l',
  AttendableEvent: 'e',
  SchoolAttendanceCode: 'c',
  Comment: 'w-000001',
}
const mark = { externalId: 'id', learner: 'l', event: 'e', code: 'c', comment: 'w-000001' }

function batchReply(...parts: [status: number, body: unknown][]): WholeReply {
  const head = '--b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n'
  const text = parts.map(([status, body]) => `${head}HTTP/1.1 ${status} x\r\n\r\n${JSON.stringify(body)}\r\n`)
  const body = Buffer.from(`${text.join('')}--b--\r\n`)
  return { status: 200, contentType: 'multipart/mixed; boundary=b', body }
}

const whole = (status: number, code = 'ADP_INTERNAL'): WholeReply => ({
  status,
  contentType: 'application/json',
  body: Buffer.from(JSON.stringify({ error: { code } })),
})

test.each([
  ['a part for each record', batchReply([201, record], [400, []], [503, []], [504, []]), [{ kind: 'created', mark }, { kind: 'refused', status: 400 }, { kind: 'notApplied' }, { kind: 'unknown' }]],
  ['superseded records and a conflict with the same status', batchReply([409, [{ code: 'ADP_SUPERSEDED' }]], [409, [{ code: 'ADP_SUPERSEDED_UNKNOWN' }]], [409, [{ code: 'CONFLICT' }]], [504, []]), [{ kind: 'superseded' }, { kind: 'gaveWay' }, { kind: 'refused', status: 409 }, { kind: 'unknown' }]],
  ['a request that was rejected with 503', whole(503), Array(4).fill({ kind: 'busy' })],
  ['a request that was rejected with 400', whole(400), Array(4).fill({ kind: 'refused', status: 400 })],
  ['a batch whose outcome is currently unknown', whole(504, 'ADP_OUTCOME_UNKNOWN'), Array(4).fill({ kind: 'noOutcome' })],
  ['a batch without an outcome from V2', whole(504, 'ADP_V2_OUTCOME_UNKNOWN'), Array(4).fill({ kind: 'noOutcome' })],
  ['a batch whose stored outcome was lost', whole(504, 'ADP_RESULT_LOST'), Array(4).fill({ kind: 'unknown' })],
  ['a request that failed with an unexpected error', whole(500), Array(4).fill({ kind: 'unknown' })],
])('readAnswers reads %s', (_name, reply, answers) => {
  expect(readAnswers(reply, 4)).toEqual(answers)
}) // prettier-ignore

test('readAnswers throws if a reply has too few parts or is cut off', () => {
  const reply = batchReply([201, record])
  expect(() => readAnswers(reply, 2)).toThrow('1 parts for 2 records')
  expect(() => readAnswers({ ...reply, body: reply.body.subarray(0, -8) }, 1)).toThrow()
})
