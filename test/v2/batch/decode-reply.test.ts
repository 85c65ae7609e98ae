import { describe, expect, it } from 'vitest'

import {
  createBatchEncoder,
  decodeBatchReply,
  encodeMismatch,
  openReplyDecoding,
  type PartReply,
  type ReplyPart,
} from '../../../src/v2/index.ts'
import { crlf } from '../support/crlf.ts'
import { faultOf } from '../support/fault-of.ts'

const HEAD = 'Content-Type: application/http\n'
const decodeBytes = (bytes: Buffer, contentType = 'multipart/mixed; boundary=b'): unknown =>
  decodeBatchReply(bytes, contentType).parts.map(({ contentId, status, body }) => ({
    contentId,
    status,
    body,
  }))
const decode = (text: string): unknown => decodeBytes(crlf(text))
const one = (content: string): string => `--b\n${HEAD}\n${content}\n--b--\n`

describe('decodeBatchReply', () => {
  const replies: PartReply[] = [
    { contentId: '1', contentIdInHttp: false, changeset: 1, status: 201, json: '{"a":"é"}' },
    { contentId: '2', contentIdInHttp: true, changeset: 1, status: 400, json: '[]' },
    { contentId: undefined, contentIdInHttp: false, changeset: 2, status: 204, json: undefined },
  ]
  it.each(['flat', 'nested'] as const)(
    'decodes a reply that the encoder writes in the layout %s',
    (layout) => {
      const encoder = createBatchEncoder(layout, () => '1')
      const body = replies.map((reply) => encoder.part(reply)).join('') + encoder.close(3)
      expect(decodeBytes(Buffer.from(body), encoder.contentType)).toEqual([
        { contentId: '1', status: 201, body: '{"a":"é"}' },
        { contentId: '2', status: 400, body: '[]' },
        { contentId: undefined, status: 204, body: '' },
      ])
    },
  )

  it('returns no parts for the single 200 that a batch gets if its ids differ (batch-wire 3)', () => {
    const { contentType, body } = encodeMismatch(() => '1')
    expect(decodeBytes(Buffer.from(body), contentType)).toEqual([])
  })

  const rows: [what: string, text: string, reply: object][] = [
    ['a part with its Content-ID among the HTTP headers only', one('HTTP/1.1 201 Created\nContent-ID: 7\n\n{}'), { contentId: '7', status: 201, body: '{}' }],
    ['a status line without a reason phrase', one('HTTP/1.0 503\n\n'), { contentId: undefined, status: 503, body: '' }],
    ['a part without a Content-Type', '--b\nX: y\n\nHTTP/1.1 200 OK\n\n{}\n--b--', { contentId: undefined, status: 200, body: '{}' }],
    ['a part that ends with its status line', one('HTTP/1.1 204 No Content'), { contentId: undefined, status: 204, body: '' }],
  ] // prettier-ignore
  it.each(rows)('decodes %s', (_, text, reply) => {
    expect(decode(text)).toEqual([reply])
  })

  it('accepts bare line feeds', () => {
    const text = one('HTTP/1.1 201 Created\nContent-ID: 7\n\n{}')
    expect(decodeBytes(Buffer.from(text))).toEqual([{ contentId: '7', status: 201, body: '{}' }])
  })

  const nested = (boundary: string, content: string): string =>
    `Content-Type: multipart/mixed; boundary=${boundary}\n\n--${boundary}\n${content}\n--${boundary}--`
  const refused: [what: string, text: string, code: string][] = [
    ['a truncated reply', `--b\n${HEAD}\nHTTP/1.1 201 Created\n`, 'ADP_TRUNCATED'],
    ['a part without a status line', one('{}'), 'ADP_REQUEST_LINE'],
    ['a part without an HTTP response', `--b\n${HEAD}\n--b--`, 'ADP_REQUEST_LINE'],
    ['a changeset within a changeset', `--b\n${nested('c', nested('d', `${HEAD}\nHTTP/1.1 200 OK\n`))}\n--b--`, 'ADP_NESTING'],
    ['a changeset that is not multipart/mixed', `--b\n${nested('c', HEAD).replace('mixed', 'related')}\n--b--`, 'ADP_MEDIA_TYPE'],
  ] // prettier-ignore
  it.each(refused)('rejects %s', (_, text, code) => {
    expect(faultOf(() => decode(text)).code).toBe(code)
  })

  describe('openReplyDecoding', () => {
    const encoded = (layout: 'flat' | 'nested'): { contentType: string; pieces: string[] } => {
      const encoder = createBatchEncoder(layout, () => '1')
      const pieces = [...replies.map((reply) => encoder.part(reply)), encoder.close(3)]
      return { contentType: encoder.contentType, pieces }
    }

    it.each(['flat', 'nested'] as const)(
      'returns each part as soon as its last byte arrives (layout %s)',
      (layout) => {
        const { contentType, pieces } = encoded(layout)
        const decoding = openReplyDecoding(contentType)
        const statuses = pieces.map((piece) => decoding.push(Buffer.from(piece)).map(({ status }) => status))
        expect([...statuses, decoding.end()]).toEqual([[201], [400], [204], [], []])
      },
    )

    it.each(['flat', 'nested'] as const)(
      'returns the same parts wherever the bytes are split (layout %s)',
      (layout) => {
        const { contentType, pieces } = encoded(layout)
        const bytes = Buffer.from(pieces.join(''))
        const whole = decodeBatchReply(bytes, contentType).parts
        const inPieces = (cuts: readonly number[]): ReplyPart[] => {
          const decoding = openReplyDecoding(contentType)
          const ends = [...cuts, bytes.length]
          const parts = ends.flatMap((end, index) => decoding.push(bytes.subarray(ends[index - 1] ?? 0, end)))
          return [...parts, ...decoding.end()]
        }
        expect(inPieces([...bytes.keys()])).toEqual(whole)
        for (let cut = 1; cut < bytes.length; cut += 1) expect(inPieces([cut])).toEqual(whole)
      },
    )

    it('waits for the delimiter if the Content-Length of a part is wrong or missing', () => {
      for (const length of ['Content-Length: 1\n', 'Content-Length: 99\n', 'Content-Length: x\n', '']) {
        const decoding = openReplyDecoding('multipart/mixed; boundary=b')
        expect(decoding.push(crlf(`--b\n${HEAD}\nHTTP/1.1 200 OK\n${length}\n{"a":1}\n`))).toEqual([])
        expect(decoding.push(crlf('--b--\n')).map(({ body }) => body)).toEqual(['{"a":1}'])
        expect(decoding.end()).toEqual([])
      }
    })

    it('reports a truncated reply after it has returned the parts that arrived', () => {
      const { contentType, pieces } = encoded('flat')
      const decoding = openReplyDecoding(contentType)
      expect(decoding.push(Buffer.from(`${pieces[0] ?? ''}--batchresp`))).toHaveLength(1)
      expect(faultOf(() => decoding.end()).code).toBe('ADP_TRUNCATED')
    })
  })

  it('rejects a reply that is not a batch', () => {
    expect(faultOf(() => decodeBytes(Buffer.from('{}'), 'application/json')).code).toBe('ADP_MEDIA_TYPE')
  })
})
