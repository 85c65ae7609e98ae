import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { readBatchReply, type UpstreamReply } from '../../../src/v3/client/batch-reply.ts'
import { guid } from '../../support/batch-request.ts'

interface Part {
  readonly id?: string
  readonly status?: number
  readonly n: number
}

const record = (n: number): string => `{"ExternalID":"${guid(n)}","ChangeProcessName":"café --b"}`

function http({ id, status = 201, n }: Part): string {
  const contentId = id === undefined ? '' : `Content-ID: ${id}\r\n`
  return `Content-Type: application/http\r\n${contentId}\r\nHTTP/1.1 ${status} Told\r\nContent-Type: application/json\r\nRetry-After: 3\r\n\r\n${record(n)}\r\n`
}

/** Returns a multipart reply. The parts in a nested array are in one changeset. */
function multipart(parts: readonly (Part | Part[])[]): UpstreamReply {
  const text = parts.map((part) =>
    Array.isArray(part)
      ? `--b\r\nContent-Type: multipart/mixed; boundary="b-inner"\r\n\r\n${part.map((own) => `--b-inner\r\n${http(own)}`).join('')}--b-inner--\r\n`
      : `--b\r\n${http(part)}`,
  )
  return reply(`${text.join('')}--b--\r\n`, 'multipart/mixed; boundary=b')
}

function reply(text: string, contentType: string | undefined, status = 200): UpstreamReply {
  return { status, body: Buffer.from(text), contentType, retryAfter: undefined }
}

function json(responses: unknown): UpstreamReply {
  return reply(JSON.stringify({ responses }), 'application/json;odata.metadata=minimal')
}

const jsonAnswer = ({ id, status = 201, n }: Part): object => ({ id, status, headers: { 'RETRY-after': '3' }, body: JSON.parse(record(n)) as unknown }) // prettier-ignore

/** Returns one word for each record: the number in the id if it was accepted, the status if it was refused, or else the reason. */
function outcomes(
  own: UpstreamReply,
  count: number,
): { words: (string | number)[]; sound: boolean | undefined } | string {
  const result = readBatchReply(own, count, 0)
  if (result.kind !== 'answered') return result.kind
  const words = result.outcomes.map((outcome) => {
    if (outcome.kind === 'accepted') return Number(outcome.reply.ExternalID.slice(-12))
    if (outcome.kind === 'refused') return `refused ${outcome.error.status}`
    return `${outcome.reason} ${outcome.kind === 'notApplied' ? String(outcome.retryAfterMs) : ''}`.trim()
  })
  return { words, sound: result.sound }
}

const lost = 'unreadableReply'

describe('readBatchReply', () => {
  const rows: [name: string, parts: (Part | Part[])[], words: (string | number)[], sound: boolean][] = [
    ['by id', [{ id: '1', n: 1 }, { id: '2', n: 2 }, { id: '3', n: 3 }], [1, 2, 3], true],
    ['by id if the parts are reordered', [{ id: '3', n: 3 }, { id: '1', n: 1 }, { id: '2', n: 2 }], [1, 2, 3], true],
    ['by position if no part has an id', [{ n: 1 }, { n: 2, status: 400 }, { n: 3 }], [1, 'refused 400', 3], true],
    ['if one answer is a 429', [{ id: '1', n: 1 }, { id: '2', n: 2, status: 429 }, { id: '3', n: 3 }], [1, 'throttled 3000', 3], true],
    ['if the parts are in changesets', [[{ id: '1', n: 1 }], [{ id: '2', n: 2 }, { id: '3', n: 3 }]], [1, 2, 3], true],
    ['if a changeset failed as one part', [[{ id: '1', n: 1 }], { id: '2', n: 2, status: 409 }, [{ id: '3', n: 3 }]], [1, 'refused 409', 3], true],
    ['if one part answers all records', [{ id: '1', n: 1, status: 400 }], ['refused 400', lost, lost], false],
    ['if one part without an id answers all records', [{ n: 1, status: 400 }], [lost, lost, lost], false],
    ['if a part is missing', [{ id: '1', n: 1 }, { id: '3', n: 3 }], [1, lost, 3], false],
    ['if there are fewer parts than records and no ids', [{ n: 1 }, { n: 3 }], [lost, lost, lost], false],
    ['if there are more parts than records and no ids', [{ n: 1 }, { n: 2 }, { n: 3 }, { n: 4 }], [lost, lost, lost], false],
    ['if two parts have the same id', [{ id: '1', n: 1 }, { id: '1', n: 2 }, { id: '3', n: 3 }], [lost, lost, 3], false],
    ['if a part has an id that was not sent', [{ id: '1', n: 1 }, { id: '9', n: 2 }, { id: '3', n: 3 }], [1, lost, 3], false],
    ['if only some parts have ids', [{ id: '1', n: 1 }, { n: 2 }, { id: '3', n: 3 }], [1, lost, 3], false],
    ['if one answer is a 500', [{ id: '1', n: 1, status: 500 }, { id: '2', n: 2 }, { id: '3', n: 3 }], ['serverError', 2, 3], true],
  ] // prettier-ignore
  it.each(rows)('returns the outcome of each record %s', (_name, parts, words, sound) => {
    expect(outcomes(multipart(parts), 3)).toEqual({ words, sound })
    const flat = parts.flat()
    // The same answers in JSON must give the same outcomes. In JSON every answer has an id.
    if (flat.every(({ id }) => id !== undefined))
      expect(outcomes(json(flat.map(jsonAnswer)), 3)).toEqual({ words, sound })
  })

  const whole: [name: string, own: UpstreamReply, expected: unknown][] = [
    ['a 404', reply('', undefined, 404), 'unsupported'],
    ['a 405', reply('', undefined, 405), 'unsupported'],
    ['a 415', reply('{"error":{}}', 'application/json', 415), 'unsupported'],
    ['a 501', reply('', undefined, 501), 'unsupported'],
    ['a 413', reply('', undefined, 413), 'tooLong'],
    ['a 429 without a time', reply('{"error":{"code":"429","message":"BATCH_TOO_MANY_REQ"}}', 'application/json', 429), 'tooLong'],
    ['a 429 with a time', reply('{"statusCode":429,"message":"Rate limit is exceeded. Try again in 2 seconds."}', 'application/json', 429), { words: ['throttled 2000', 'throttled 2000'], sound: true }],
    ['a 401', reply('', undefined, 401), { words: ['refused 401', 'refused 401'], sound: true }],
    ['a 503', reply('', undefined, 503), { words: ['unavailable undefined', 'unavailable undefined'], sound: true }],
    ['a 302', reply('', undefined, 302), { words: ['redirected undefined', 'redirected undefined'], sound: true }],
    ['a 500', reply('', undefined, 500), { words: ['serverError', 'serverError'], sound: false }],
    ['a 202', reply('{"responses":[]}', 'application/json', 202), { words: [lost, lost], sound: false }],
    ['HTML', reply('<html>', 'text/html'), { words: [lost, lost], sound: false }],
    ['an empty body', reply('', undefined), { words: [lost, lost], sound: false }],
    ['broken JSON', reply('{"responses":[', 'application/json'), { words: [lost, lost], sound: false }],
    ['JSON of another form', json([{ id: 1, status: '201' }]), { words: [lost, lost], sound: false }],
    ['multipart without a boundary', reply('--b--', 'multipart/mixed'), { words: [lost, lost], sound: false }],
    ['parts without an HTTP response', reply('--b\r\n\r\nx\r\n--b\r\nContent-ID: 2\r\n\r\n\r\n--b--', 'multipart/mixed; boundary=b'), { words: [lost, lost], sound: false }],
  ] // prettier-ignore
  it.each(whole)('reads %s as the reply to a whole batch', (_name, own, expected) => {
    expect(outcomes(own, 2)).toEqual(expected)
  })

  it('reads a part with repeated header fields, but assigns a part with two ids to no record', () => {
    const part = (ids: string, n: number): string =>
      `--b\r\nContent-Type: application/http\r\n${ids}\r\nHTTP/1.1 429 Told\r\nRetry-After: 3\r\nRetry-After: 3\r\n\r\n${record(n)}\r\n`
    const parts = [part('Content-ID: 1\r\n', 1), part('Content-ID: 2\r\nContent-ID: 3\r\n', 2)]
    const own = reply(`${parts.join('')}--b--\r\n`, 'multipart/mixed; boundary=b')
    expect(outcomes(own, 2)).toEqual({ words: ['throttled 3000', lost], sound: false })
    const answers = [
      { id: '1', status: 429, headers: { 'retry-after': ['3', '3'] } },
      jsonAnswer({ id: '2', n: 2 }),
    ]
    expect(outcomes(json(answers), 2)).toEqual({ words: ['throttled 3000', 2], sound: true })
  })

  it('assigns no part to a record if the JSON of a part is nested too deeply', () => {
    const deep = '['.repeat(5_000) + ']'.repeat(5_000)
    const body = `{"responses":[{"id":"1","status":201,"headers":{},"body":${deep}},{"id":"2","status":201,"body":${record(2)}}]}`
    expect(outcomes(reply(body, 'application/json'), 2)).toEqual({ words: [lost, lost], sound: false })
  })

  it('reads the complete parts of a reply that broke off, and does not conclude whether the service supports batches', () => {
    const { body, contentType } = multipart([{ id: '1', n: 1 }, { id: '2', n: 2 }, { id: '3', n: 3 }]) // prettier-ignore
    const cut = { kind: 'unknown', reason: 'connectionLost' } as const
    const end = body.indexOf('--b\r\n', body.lastIndexOf('--b\r\n')) + '--b\r\n'.length
    const own = { ...reply('', contentType), body: body.subarray(0, end), cut }
    expect(outcomes(own, 3)).toEqual({ words: [1, 2, 'connectionLost'], sound: undefined })
  })

  it('never reads an outcome from an incomplete part, wherever the reply breaks off', () => {
    const { body } = multipart([{ id: '1', n: 1 }, [{ id: '2', n: 2 }], { id: '3', n: 3 }])
    fc.assert(
      fc.property(fc.nat(body.length), (end) => {
        const torn = { ...reply('', 'multipart/mixed; boundary=b'), body: body.subarray(0, end) }
        const result = outcomes(torn, 3)
        if (typeof result === 'string') throw new Error(result)
        result.words.forEach((word, index) => {
          expect([index + 1, lost]).toContain(word)
        })
      }),
      { numRuns: 300 },
    )
  })
})
