import { describe, expect, it } from 'vitest'

import { type Batch, decodeBatch, type DecodeOptions } from '../../../src/v2/batch/decode-batch.ts'
import { defaultBatchLimits } from '../../../src/v2/limits.ts'
import type { FlatRecord } from '../../../src/v2/record/decode-record.ts'
import { crlf } from '../support/crlf.ts'
import { faultOf } from '../support/fault-of.ts'

const record: FlatRecord = {
  Present: true,
  Absent: false,
  Learner: '2b6f0cc9-04d6-4a8b-9c3e-5f1e7a9d2c41',
  AttendableEvent: 'a7c1e2d3-5b4f-4e6a-8d7c-9b0a1f2e3d4c',
  SchoolAttendanceCode: '9d8e7f6a-1b2c-4d3e-8f9a-0b1c2d3e4f5a',
  MinutesLate: undefined,
  Comment: undefined,
  unmapped: undefined,
}
const JSON_TEXT = JSON.stringify(record)
const LINE = 'POST AttendanceRecords HTTP/1.1\n'
const HTTP = 'Content-Type: application/http\nContent-Transfer-Encoding: binary\n'
const CONTENT_TYPE = 'multipart/mixed; boundary=B'

const part = (id: number, body = JSON_TEXT): string => `${HTTP}Content-ID: ${id}\n\n${LINE}\n${body}\n`
const flat = (...parts: string[]): string => `${parts.map((text) => `--B\n${text}`).join('')}--B--\n`
const changeset = (boundary: string, ...parts: string[]): string =>
  `Content-Type: multipart/mixed; boundary=${boundary}\n\n` +
  `${parts.map((text) => `--${boundary}\n${text}`).join('')}--${boundary}--\n`

function decode(text: string, options: DecodeOptions = {}, contentType = CONTENT_TYPE): Batch {
  return decodeBatch(crlf(text), contentType, options)
}

describe('decodeBatch', () => {
  it('returns the boundary, the changesets and every part of a batch', () => {
    const text = flat(part(7), changeset('C', part(1), part(2, '{}')))
    const bytes = crlf(text)
    const body = (from: number): { start: number; end: number } => {
      const start = bytes.indexOf('{', from)
      return { start, end: bytes.indexOf('\r\n', start) }
    }
    const first = body(0)
    const second = body(first.end)
    const plain = {
      contentIdInHttp: false,
      prefersMinimal: false,
      metadata: 'minimal',
      faults: undefined,
      record,
    }
    expect(decodeBatch(bytes, CONTENT_TYPE)).toEqual({
      boundary: 'B',
      changesets: ['C'],
      idsAgree: true,
      parts: [
        { ...plain, part: 1, changeset: undefined, contentId: '7', ...first },
        { ...plain, part: 2, changeset: 1, contentId: '1', ...second },
        {
          ...plain,
          part: 3,
          changeset: 1,
          contentId: '2',
          ...body(second.end),
          record: undefined,
          faults: ['Present', 'Absent', 'Learner', 'AttendableEvent', 'SchoolAttendanceCode'].map((name) => ({
            code: 'ADP_FIELD',
            message: expect.stringContaining(`${name} is required`) as unknown,
          })),
        },
      ],
    })
  })

  const shapes: [what: string, text: string, parts: [changeset: number | undefined, id: string | undefined][], changesets: string[]][] = [
    ['decodes a batch after a byte order mark and blank lines (batch-wire F3)', `\ufeff\n\n${flat(part(1))}`, [[undefined, '1']], []],
    ['decodes a batch right after a byte order mark (batch-wire F3)', `\ufeff${flat(part(1))}`, [[undefined, '1']], []],
    ['skips the preamble and epilogue of a changeset (batch-wire F3)', flat(changeset('C', part(1)).replace('\n\n', '\n\npre\n') + 'epi\n'), [[1, '1']], ['C']],
    ['decodes parts outside a changeset and without a Content-ID (batch-wire F10)', flat(part(1).replace(/Content-ID.*\n/, ''), part(2)), [[undefined, undefined], [undefined, '2']], []],
    ['decodes several changesets of which one is empty (batch-wire F11)', flat(changeset('C', part(1)), changeset('D'), changeset('E', part(2), part(3))), [[1, '1'], [3, '2'], [3, '3']], ['C', 'D', 'E']],
    ['decodes an empty batch (batch-wire F11)', flat(), [], []],
    ['decodes a part whose type has parameters (batch-wire F13)', flat(part(1).replace('application/http', 'Application/HTTP; msgtype=request')), [[undefined, '1']], []],
    ['decodes two parts with the same Content-ID (batch-wire F16)', flat(part(1), part(1)), [[undefined, '1'], [undefined, '1']], []],
    ['prefers the Content-ID of the MIME headers (batch-wire F16)', flat(part(1).replace(LINE, `${LINE}Content-ID: 7\n`), part(2).replace(LINE, `${LINE}Content-ID: 8\n`)), [[undefined, '1'], [undefined, '2']], []],
    ['uses a Content-ID among the HTTP headers if the MIME headers have none (batch-wire F16)', flat(part(1).replace('Content-ID: 1\n', '').replace(LINE, `${LINE}Content-ID: 7\n`)), [[undefined, '7']], []],
    ['keeps no-break spaces around a Content-ID (batch-wire F16)', flat(part(1).replace(': 1', ':\t \u00a01\u00a0\t'), part(2).replace(': 2', ': \u00a02\u3000')), [[undefined, '\u00a01\u00a0'], [undefined, '\u00a02\u3000']], []],
    ['accepts spaces in the target (batch-wire F21)', flat(part(1).replace('POST ', 'POST \t /My  School/'), part(2).replace('POST ', 'POST http://other.example/My School/')), [[undefined, '1'], [undefined, '2']], []],
    ['accepts empty parentheses after the collection (batch-wire F21)', flat(part(1).replace('Records', 'Records()'), part(2).replace('Records', 'Records()/?a=b')), [[undefined, '1'], [undefined, '2']], []],
    ['decodes two changesets with the same boundary (batch-wire F11)', flat(changeset('C', part(1)), changeset('C', part(2))), [[1, '1'], [2, '2']], ['C', 'C']],
    ['decodes a changeset with a binary transfer encoding (batch-wire F32)', flat(`Content-Transfer-Encoding: Binary\n${changeset('C', part(1))}`), [[1, '1']], ['C']],
  ] // prettier-ignore
  it.each(shapes)('%s', (_, text, parts, changesets) => {
    const batch = decode(text)
    expect(batch.parts.map((own) => [own.changeset, own.contentId])).toEqual(parts)
    expect(batch.parts.map((own) => own.record)).toEqual(parts.map(() => record))
    expect(batch.changesets).toEqual(changesets)
  })

  it.each(['20bbbf', 'ef20bf', 'efbb20'])(
    'treats the bytes %s as text and not as a byte order mark (batch-wire F3)',
    (hex) => {
      const bytes = Buffer.concat([Buffer.from(hex, 'hex'), crlf(flat(part(1), part(2)))])
      expect(decodeBatch(bytes, CONTENT_TYPE).parts.map(({ contentId }) => contentId)).toEqual(['2'])
    },
  )

  const partFaults: [what: string, text: Buffer, code: string][] = [
    ['refuses a part with GET (batch-wire F22)', crlf(flat(`${HTTP}\nGET AttendanceRecords HTTP/1.1\n`)), 'ADP_METHOD'],
    ['refuses a part whose method is in small letters (batch-wire F22)', crlf(flat(part(1).replace('POST', 'post'))), 'ADP_METHOD'],
    ['refuses a POST to a single record (batch-wire F22)', crlf(flat(part(1).replace('Records', 'Records(1)'))), 'ADP_METHOD'],
    ['refuses a part whose JSON ends early (batch-wire F23)', crlf(flat(part(1, '{'))), 'ADP_JSON'],
    ['refuses a part with malformed UTF-8 (batch-wire F26)', Buffer.from(flat(part(1, '{"Comment":"é"}')), 'latin1'), 'ADP_CHARSET'],
    ['refuses a part with a byte that its charset does not define (batch-wire F26)', Buffer.from(flat(part(1, '{"Comment":"Ò"}').replace(LINE, `${LINE}Content-Type: a/b; charset=windows-1253\n`)), 'latin1'), 'ADP_CHARSET'],
    ['refuses a part with an unknown charset (batch-wire F26)', crlf(flat(part(1).replace(LINE, `${LINE}Content-Type: a/b; charset=utf-16\n`))), 'ADP_CHARSET'],
  ] // prettier-ignore
  it.each(partFaults)('%s, but decodes the rest of the batch', (_, bytes, code) => {
    const [own] = decodeBatch(bytes, CONTENT_TYPE).parts
    expect(own?.record).toBeUndefined()
    expect(own?.faults?.map((fault) => fault.code)).toEqual([code])
  })

  it.each([
    ['ISO-8859-1', 'e9a480', 'é¤\u0080'],
    ['windows-1252', 'e98096', 'é€–'],
    ['ISO-8859-15', 'e9a4', 'é€'],
    ['windows-1250', 'f8e8', 'řč'],
    ['koi8-r', 'c1c2', 'аб'],
  ])(
    'reads %s in a part that names this charset, and UTF-8 in the other parts (batch-wire F26)',
    (charset, hex, text) => {
      const withComment = (comment: string): string => JSON.stringify({ ...record, Comment: comment })
      const type = `Content-Type: application/json;charset=${charset}\n`
      const comment = Buffer.from(hex, 'hex').toString('latin1')
      const bytes = Buffer.concat([
        Buffer.from(`--B\n${part(1, withComment(comment)).replace(LINE, `${LINE}${type}`)}`, 'latin1'),
        Buffer.from(flat(part(2, withComment('é')))),
      ])
      expect(decodeBatch(bytes, CONTENT_TYPE).parts.map((own) => own.record?.Comment)).toEqual([text, 'é'])
    },
  )

  it.each(['7bit', '8BIT', 'Binary'])(
    'decodes a changeset with the transfer encoding %s (batch-wire F32)',
    (encoding) => {
      const text = flat(changeset('C', part(1)))
      const encoded = text.replace('boundary=C', `boundary=C\nContent-Transfer-Encoding: ${encoding}`)
      expect(encoded).not.toBe(text)
      expect(decodeBatch(crlf(encoded), CONTENT_TYPE).parts).toHaveLength(1)
    },
  )

  it('splits the body by the batch boundary if the header names a changeset and the boundaries have braces (batch-wire F12, F31)', () => {
    const text = flat(changeset('C', part(1)), changeset('D', part(2)))
      .replaceAll('--B', '--batch_{1}')
      .replaceAll('--C', '--changeset_{2}')
      .replace('boundary=C', 'boundary="changeset_{2}"')
    const { boundary, parts } = decodeBatch(crlf(text), 'multipart/mixed; boundary="changeset_{2}"')
    expect([boundary, parts.length]).toEqual(['batch_{1}', 2])
  })

  const refused: [what: string, text: string, code: string, part: number | undefined, where: string][] = [
    ['rejects an empty body (batch-wire F8)', '', 'ADP_TRUNCATED', undefined, ''],
    ['rejects a batch without a closing delimiter (batch-wire F8)', flat(part(1)).replace('--B--', ''), 'ADP_TRUNCATED', undefined, ''],
    ['rejects a changeset without a closing delimiter (batch-wire F8)', flat(changeset('C', part(1)).replace('--C--', '')), 'ADP_TRUNCATED', undefined, '\r\n--B--'],
    ['rejects a changeset without any delimiter (batch-wire F8)', flat('Content-Type: multipart/mixed; boundary=C\n\n'), 'ADP_TRUNCATED', undefined, '\r\n--B--'],
    ['rejects a changeset with the boundary of the batch (batch-wire F9)', flat(changeset('B', part(1))), 'ADP_NESTING', 1, 'Content-Type: multipart/'],
    ['rejects a changeset within a changeset (batch-wire F9)', flat(changeset('C', changeset('D', part(1)))), 'ADP_NESTING', 1, 'Content-Type: multipart/'],
    ['rejects a boundary of 71 characters (batch-wire F5)', flat(changeset('c'.repeat(71), part(1))), 'ADP_BOUNDARY', 1, 'Content-Type: multipart/'],
    ['rejects a changeset whose type has no boundary (batch-wire F6)', flat('Content-Type: multipart/mixed\n\nx\n'), 'ADP_BOUNDARY', 1, 'Content-Type: multipart/'],
    ['rejects a part of another type (batch-wire F13)', flat(part(1), part(2).replace('application/http', 'application/json')), 'ADP_PART_TYPE', 2, 'Content-Type: application/json'],
    ['rejects a part without a type (batch-wire F13)', flat(part(1).replace(/Content-Type.*\n/, '')), 'ADP_PART_TYPE', 1, 'Content-Transfer-Encoding: binary'],
    ['rejects a part whose type is malformed (batch-wire F13)', flat(part(1).replace('application/http', 'application/http; "')), 'ADP_PART_TYPE', 1, 'Content-Type: application/'],
    ['rejects a multipart part that is not multipart/mixed (batch-wire F13)', flat(changeset('C', part(1)).replace('mixed', 'form-data')), 'ADP_PART_TYPE', 1, 'Content-Type: multipart/'],
    ['rejects a part in base64 (batch-wire F14)', flat(part(1).replace('binary', 'base64')), 'ADP_PART_ENCODING', 1, 'Content-Type: application/'],
    ['rejects a changeset in base64 (batch-wire F32)', flat(`Content-Transfer-Encoding: base64\n${changeset('C', part(1))}`), 'ADP_PART_ENCODING', 1, 'Content-Transfer-Encoding: base64'],
    ['rejects two Content-IDs among the MIME headers (batch-wire F16)', flat(part(1).replace('Content-ID: 1', 'Content-ID: 1\nContent-ID: 2')), 'ADP_CONTENT_ID', 1, 'Content-Type: application/'],
    ['rejects a target with text after a space at its end (batch-wire F21)', flat(part(1).replace(' HTTP/1.1', ' x HTTP/1.1')), 'ADP_TARGET', 1, 'POST Attendance'],
    ['rejects a tab in the target (batch-wire F21)', flat(part(1).replace('POST ', 'POST My\tSchool/')), 'ADP_REQUEST_LINE', 1, 'POST My'],
    ['rejects a part without a blank line after the MIME headers (batch-wire F18)', flat(part(1).replace('\n\n', '\n')), 'ADP_HEADER', 1, 'POST'],
    ['rejects a part that ends with its MIME headers (batch-wire F18)', flat(HTTP), 'ADP_HEADER', 1, 'Content-Type: application/'],
    ['rejects a part of a changeset that ends with its MIME headers (batch-wire F18)', flat(changeset('C', HTTP)), 'ADP_HEADER', 1, 'Content-Type: application/'],
    ['rejects a target on another host (batch-wire F21)', flat(part(1).replace('Attendance', 'http://other.example/Attendance')), 'ADP_TARGET', 1, 'POST http:'],
  ] // prettier-ignore
  it.each(refused)('%s, and reports the offset of the fault', (_, text, code, index, where) => {
    const options = { serviceHosts: new Set(['service.example']) }
    const fault = faultOf(() => decode(text, options))
    expect({ code: fault.code, part: fault.at.part }).toEqual({ code, part: index })
    const rest = crlf(text).subarray(fault.at.offset).toString()
    expect(where === '' ? rest : rest.slice(0, where.length)).toBe(where)
    expect(fault.at.offset).toBeDefined()
  })

  it('sets contentIdInHttp only if the id of the part is a Content-ID among the HTTP headers (batch-wire F16)', () => {
    const both = (mime: number, http: number): string =>
      part(mime).replace(LINE, `${LINE}Content-ID: ${http}\n`)
    const text = flat(both(1, 1), both(2, 7), part(3).replace('Content-ID: 3', 'X-Id: 3'), both(4, 4))
    const ids = decode(text).parts.map(({ contentId, contentIdInHttp }) => [contentId, contentIdInHttp])
    expect(ids).toEqual([
      ['1', true],
      ['2', false],
      [undefined, false],
      ['4', true],
    ])
  })

  const misencoded: [what: string, bytes: Buffer, message: RegExp][] = [
    ['UTF-16 with a byte order mark', Buffer.from(`\ufeff${flat(part(1))}`, 'utf16le'), /UTF-16/],
    ['UTF-16 without a byte order mark', Buffer.from(flat(part(1)), 'utf16le').swap16(), /UTF-16/],
    ['lines that end in CR CR LF', Buffer.from(flat(part(1)).replaceAll('\n', '\r\r\n')), /CR CR LF/],
    ['lines of a changeset that end in CR CR LF', Buffer.from(flat(changeset('C', part(1))).replaceAll('\n', '\r\r\n')), /CR CR LF/],
    ['headers of parts that end in CR CR LF', Buffer.from(flat(part(1)).replaceAll(/(?<=^[A-Z].*)\n/gm, '\r\r\n')), /CR CR LF/],
    ['lines that end in CR alone', Buffer.from(flat(part(1)).replaceAll('\n', '\r')), /CR alone/],
  ] // prettier-ignore
  it.each(misencoded)(
    'names the cause in the error if the body has %s (batch-wire F8)',
    (_, bytes, message) => {
      expect(() => decodeBatch(bytes, CONTENT_TYPE)).toThrow(message)
      expect(faultOf(() => decodeBatch(bytes, CONTENT_TYPE)).code).toBe('ADP_BODY')
    },
  )

  it('reports a truncated body, and not its line ends, if one record has lines that end in CR CR LF (batch-wire F8)', () => {
    const text = flat(part(1, '{\r\n}')).replace('--B--', '')
    expect(faultOf(() => decode(text)).code).toBe('ADP_TRUNCATED')
  })

  it.each([
    'application/json, multipart/mixed; boundary=B',
    'multipart/mixed, application/json; boundary=B',
    'application/json; boundary="B',
    'boundary=B',
  ])(
    'rejects the Content-Type %s with 415, because it is not multipart/mixed (batch-wire F7)',
    (contentType) => {
      expect(faultOf(() => decode(flat(part(1)), {}, contentType)).code).toBe('ADP_MEDIA_TYPE')
    },
  )

  const limited: [what: string, limits: Partial<typeof defaultBatchLimits>, text: string, code: string][] = [
    ['body bytes', { maxBodyBytes: 100 }, flat(part(1)), 'ADP_TOO_LARGE'],
    ['parts', { maxParts: 2 }, flat(part(1), changeset('C', part(2), part(3))), 'ADP_TOO_LARGE'],
    ['changesets', { maxParts: 2 }, flat(changeset('C'), changeset('D'), changeset('E')), 'ADP_TOO_LARGE'],
    ['header bytes', { maxPartHeaderBytes: 80 }, flat(part(1)), 'ADP_LIMIT'],
    ['header lines', { maxHeaderLines: 2 }, flat(part(1)), 'ADP_LIMIT'],
    [
      'spaces on a delimiter line',
      { maxBoundaryPadding: 1 },
      flat(part(1)).replace('--B--', '--B--  '),
      'ADP_LIMIT',
    ],
  ]
  it.each(limited)('limits the number of %s (batch-wire F27)', (_, limits, text, code) => {
    expect(decode(text).boundary).toBe('B')
    expect(faultOf(() => decode(text, { limits: { ...defaultBatchLimits, ...limits } })).code).toBe(code)
  })

  it('reports whether the ids in the header and the body agree (batch-wire 3)', () => {
    const text = flat(changeset('C', part(1)))
    const agree = ['B', 'C', 'other'].map((boundary) => {
      const batch = decode(text, {}, `multipart/mixed; boundary=${boundary}`)
      return [batch.boundary, batch.idsAgree, batch.parts.length]
    })
    expect(agree).toEqual([
      ['B', true, 1],
      ['B', true, 1],
      ['B', false, 1],
    ])
  })
})

const ONE = '36522ad7-fc75-4b56-8c71-56071383e77b'
const TWO = '77162fcd-b8da-41ac-a9f8-9357efbbd621'

describe('the id rule of decodeBatch', () => {
  const rows: [what: string, header: string, delimiters: string[], agree: boolean][] = [
    ['the batch', `batch_${ONE}`, [`batch_${ONE}`, `changeset_${TWO}`], true],
    ['a changeset', `changeset_${TWO}`, [`batch_${ONE}`, `changeset_${TWO}`], true],
    [
      'the last changeset',
      `changeset_${TWO}`,
      [`batch_${ONE}`, `changeset_${ONE}`, `changeset_${TWO}`],
      true,
    ],
    [
      'the guid of a changeset with the prefix of a batch',
      `batch_${TWO}`,
      [`batch_${ONE}`, `changeset_${TWO}`],
      true,
    ],
    ['the guid of the batch with the prefix of a changeset', `changeset_${ONE}`, [`batch_${ONE}`], true],
    ['the guid of the batch in another letter case', `batch_${ONE.toUpperCase()}`, [`batch_${ONE}`], true],
    ['the guid of the batch without a prefix', ONE, [`batch_${ONE}`], true],
    ['another guid', `batch_${TWO}`, [`batch_${ONE}`, `changeset_${ONE}`], false],
    ['the same text without a guid', 'b', ['b'], true],
    ['another text without a guid', 'b', ['B', 'c'], false],
    ['no guid although the body has one', 'b', [`batch_${ONE}`], false],
  ]
  it.each(rows)(
    'says whether the ids agree if the boundary in the header names %s (batch-wire 3)',
    (_, header, delimiters, agree) => {
      const [batch = '', ...changesets] = delimiters
      const text = flat(part(0), ...changesets.map((name, index) => changeset(name, part(index + 1))))
      const body = text.replaceAll(/^--B/gm, `--${batch}`)
      expect(decode(body, {}, `multipart/mixed; boundary=${header}`).idsAgree).toBe(agree)
    },
  )
})
