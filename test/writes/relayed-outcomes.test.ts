import { gzipSync } from 'node:zlib'

import { describe, expect, it } from 'vitest'

import { decodeKeptReply } from '../../src/writes/relayed/kept-reply.ts'
import { outcomesOf, type RelayEnd } from '../../src/writes/relayed/relayed-outcomes.ts'

const replyOf = (statuses: readonly number[]): Buffer =>
  Buffer.from(
    [
      ...statuses.map(
        (status) => `--b\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 ${status} X\r\n\r\n{"é":1}\r\n`,
      ),
      '--b--\r\n',
    ].join(''),
  )
const answered = (status: number, body: Buffer | undefined, fields: string[] = []): RelayEnd => ({
  kind: 'answered',
  reply: {
    status,
    reason: 'Fine',
    fields: ['Content-Type', 'multipart/mixed; boundary=b', ...fields],
    trailers: [['X-End', 'yes']],
    body,
  },
})
const statesOf = (end: RelayEnd, each: number | undefined, kind: 'batch' | 'record' = 'batch') =>
  outcomesOf(end, kind, each).map(({ state, retry }) => (retry === undefined ? state : `${state} ${retry}`))

describe('what the journal keeps of a request to V2', () => {
  it.each([
    [
      'each part',
      answered(200, replyOf([201, 400, 504, 204])),
      4,
      ['confirmed', 'refused', 'unknown', 'confirmed'],
    ],
    [
      'a compressed reply',
      answered(200, gzipSync(replyOf([201])), ['Content-Encoding', 'gzip']),
      1,
      ['confirmed'],
    ],
    ['broken compression', answered(200, Buffer.from('x'), ['Content-Encoding', 'gzip']), 1, ['unknown']],
    [
      'an encoding that it does not know',
      answered(200, replyOf([201]), ['Content-Encoding', 'zz']),
      1,
      ['unknown'],
    ],
    ['another number of parts', answered(200, replyOf([201])), 2, ['unknown', 'unknown']],
    ['a 200 without parts', answered(200, Buffer.alloc(0)), 1, ['unknown']],
    ['a reply that is too large', answered(200, undefined), 2, ['unknown resend', 'unknown resend']],
    ['a refusal', answered(401, Buffer.from('{}')), 2, ['refused resend', 'refused resend']],
    ['a failure', answered(503, Buffer.from('{}')), 1, ['unknown resend']],
    ['a redirect', answered(302, Buffer.alloc(0)), 1, ['unknown resend']],
    ['a reply that was lost', { kind: 'lost' } as const, 2, ['unknown resend', 'unknown resend']],
    ['what never left', { kind: 'notSent' } as const, 1, ['refused resend']],
    ['a request known by its identity', answered(200, replyOf([400])), undefined, ['confirmed']],
  ])('%s', (_what, end, each, states) => {
    expect(statesOf(end, each)).toEqual(states)
  })

  it('a single record, by the status', () => {
    expect(statesOf(answered(201, Buffer.from('{}')), 1, 'record')).toEqual(['confirmed'])
    expect(statesOf(answered(400, Buffer.from('[]')), 1, 'record')).toEqual(['refused'])
    expect(outcomesOf(answered(201, Buffer.from('{}')), 'record', 1)[0]?.answer).toBeUndefined()
  })

  it('the reply with the first record, byte for byte', () => {
    const body = Buffer.concat([replyOf([400]), Buffer.from([0, 255, 10, 13])])
    const end = answered(200, body)
    const [first, ...others] = outcomesOf(end, 'batch', 3)
    expect(others.map(({ answer }) => answer)).toEqual([undefined, undefined])
    expect(decodeKeptReply(first?.answer)).toEqual(end.kind === 'answered' ? end.reply : undefined)
  })
})
