import { describe, expect, it } from 'vitest'

import { type BatchPart, decodeBatch, type DecodeOptions } from '../../src/v2/index.ts'
import { crlf } from './support/crlf.ts'
import { faultOf } from './support/fault-of.ts'

const MIME = 'Content-Type: application/http\n'
const LINE = 'POST AttendanceRecords HTTP/1.1\n'
const HEADER = 'multipart/mixed; boundary=B'

/** Returns a batch with the changesets `C1`, `C2` and so on, one for each part. */
const inChangesets = (...parts: readonly string[]): string =>
  parts.map((part, index) => `--B\n${mixed(`C${index + 1}`)}--C${index + 1}\n${part}--C${index + 1}--\n`).join('') +
  '--B--\n' // prettier-ignore
const mixed = (boundary: string): string => `Content-Type: multipart/mixed; boundary=${boundary}\n\n`
const flat = (boundary: string, ...parts: readonly string[]): string =>
  `${parts.map((part) => `--${boundary}\n${part}`).join('')}--${boundary}--\n`
const part = (line = LINE, headers = '', mime = MIME): string => `${mime}\n${line}${headers}\n{}\n`

const boundaryOf = (text: string, contentType?: string): string =>
  decodeBatch(crlf(text), contentType).boundary
function decodePart(text: string, options: DecodeOptions = {}): BatchPart | undefined {
  return decodeBatch(crlf(flat('B', text)), HEADER, options).parts[0]
}

describe('decodeBatch, for the boundary in Content-Type', () => {
  const LONGEST = 'b'.repeat(70)
  it.each([
    ['multipart/mixed; boundary=batch_1', 'batch_1'],
    ['multipart/mixed; boundary="batch_1"', 'batch_1'],
    ['MULTIPART/Mixed;Boundary=batch_1', 'batch_1'],
    ['multipart/mixed; charset=utf-8; boundary=batch_1', 'batch_1'],
    ['multipart/mixed; boundary="batch_1"; charset=utf-8', 'batch_1'],
    [`multipart/mixed; boundary=${LONGEST}`, LONGEST],
    ['multipart/mixed; boundary="a b"', 'a b'],
    [`multipart/mixed; boundary="'()+_,-./:=?"`, `'()+_,-./:=?`],
    [`multipart/mixed; boundary="${LONGEST}{}"`, `${LONGEST}{}`],
    [`multipart/mixed; boundary="${'{'.repeat(200)}"`, '{'.repeat(200)],
    ['multipart/mixed; boundary="batch_{1}"', 'batch_{1}'],
    ['multipart/mixed; boundary="a;b=\\"c\\""', 'a;b="c"'],
  ])('splits the body by the boundary of %j (batch-wire F5, F31)', (contentType, boundary) => {
    expect(boundaryOf(`--${boundary}--`, contentType)).toBe(boundary)
  })

  it.each([
    [undefined, 'ADP_MEDIA_TYPE'],
    [' ', 'ADP_MEDIA_TYPE'],
    ['application/json', 'ADP_MEDIA_TYPE'],
    ['multipart/form-data; boundary=b', 'ADP_MEDIA_TYPE'],
    ['multipart/mixed', 'ADP_BOUNDARY'],
    ['multipart/mixed; boundary=', 'ADP_BOUNDARY'],
    ['multipart/mixed; boundary=""', 'ADP_BOUNDARY'],
    ['multipart/mixed; boundary=a; boundary=a', 'ADP_BOUNDARY'],
    ['multipart/mixed; boundary="a', 'ADP_BOUNDARY'],
    ['multipart/mixed; boundary=a\u0001b', 'ADP_BOUNDARY'],
    ['multipart/mixed; boundary="a\tb"', 'ADP_BOUNDARY'],
    ['multipart/mixed; boundary="a "', 'ADP_BOUNDARY'],
    ['multipart/mixed; boundary=é', 'ADP_BOUNDARY'],
    [`multipart/mixed; boundary=${LONGEST}b`, 'ADP_BOUNDARY'],
    ['multipart/mixed; boundary=batch_{1}', 'ADP_BOUNDARY'],
    [`multipart/mixed; boundary="${'b'.repeat(201)}"`, 'ADP_BOUNDARY'],
    ['multipart/mixed; boundary="é"', 'ADP_BOUNDARY'],
    ['multipart', 'ADP_MEDIA_TYPE'],
  ])('rejects the Content-Type %j with %s (batch-wire F5 to F7)', (contentType, code) => {
    expect(faultOf(() => boundaryOf('--b--', contentType)).code).toBe(code)
  })
})

describe('decodeBatch, when it chooses the boundary that splits the body', () => {
  const TWO = inChangesets(part(), part())
  it.each([
    ['the header names the batch', TWO, 'B'],
    ['the header names the batch and blank lines precede it', `\n\n${TWO}`, 'B'],
    ['the header names the batch and dashes precede it', `a -- b\n--\n--note\n${TWO}`, 'B'],
    ['the header names the first changeset', TWO, 'C1'],
    ['the header names the last changeset', TWO, 'C2'],
    ['the header names a boundary that is not in the body', TWO, 'other'],
    ["the header's boundary is not in the body and prose precedes the batch", `Hello\n--note\n${TWO}`, 'other'],
    ['spaces and tabs follow the delimiters of the batch', TWO.replaceAll(/^--B(--)?$/gm, '--B$1 \t'), 'other'],
    ['the header names a flat batch', flat('B', part()), 'B'],
    ["the header's boundary is not in the body and the batch is flat", flat('B', part()), 'other'],
    ['the last line has no line end', TWO.trimEnd(), 'C1'],
    ['the preamble has a long line of dashes', `--${'-'.repeat(500)}\n${TWO}`, 'C1'],
    ['the preamble has a dashed line that cannot be a boundary', `--{}\n${TWO}`, 'other'],
    ['a dashed line precedes prose', `--note\nsee below: nothing\n${flat('B', part())}`, 'B'],
    ['a dashed line precedes prose that looks like a header', `--note\nNote: this\nis prose, Content-Type: none\n${flat('B', part())}`, 'B'],
  ])('chooses the boundary of the batch if %s (batch-wire F12)', (_, text, header) => {
    expect(boundaryOf(text, `multipart/mixed; boundary=${header}`)).toBe('B')
  }) // prettier-ignore

  const cut = TWO.slice(0, TWO.indexOf('--B--'))
  it.each<readonly [what: string, text: string, header: string]>([
    ['an empty body', '', 'B'],
    ['a body of prose', 'Hello\n--note\nx', 'B'],
    ['an unclosed batch whose first changeset the header names', cut, 'C1'],
    ['an unclosed batch whose last changeset the header names', cut, 'C2'],
    ['an unclosed batch whose boundary the header does not name', cut, 'other'],
    ['a whole envelope before the one that the header names', flat('A', part()) + flat('B', part()), 'B'],
    ['two whole envelopes that the header does not name', flat('A', part()) + flat('B', part()), 'other'],
    ...[
      'Content-Type: multipart/mixed; boundary=C1\nContent-Length: 9\n',
      'Content-Length: 9\nContent-Type: multipart/mixed; boundary=C1\n',
      'X-Folded: a\n b\nDate:\ncontent-type:multipart/mixed;boundary=C1\n',
      'Content-ID : 1\n',
      'content-transfer-encoding\t: binary\n',
    ].map((head) => [`an unclosed envelope known by ${JSON.stringify(head)}`, `--B\n${head}\n${flat('C1', part())}`, 'C1'] as const),
  ])('rejects %s (batch-wire F8, F12)', (_, text, header) => {
    expect(faultOf(() => boundaryOf(text, `multipart/mixed; boundary=${header}`)).code).toBe('ADP_TRUNCATED')
  }) // prettier-ignore
})

describe('decodeBatch, for the header lines of a part', () => {
  const plain = { contentId: undefined, contentIdInHttp: false, prefersMinimal: false, metadata: 'minimal' }
  const inHttp = (contentId: string): object => ({ contentId, contentIdInHttp: true })
  it.each<[what: string, text: string, head: object]>([
    ['a request without headers', part(), {}],
    ['a binary transfer encoding in capitals (batch-wire F14)', part(LINE, '', `${MIME}Content-Transfer-Encoding: BINARY\n`), {}],
    ['folded headers (batch-wire F15)', part(LINE, 'Prefer:\n return=minimal\nA: b\n \tc\n'), { prefersMinimal: true }],
    ['headers with any text (batch-wire F15)', part(LINE, 'A: é "x": y\nB:\nC:\td \n'), {}],
    ['a Content-ID among the MIME headers (batch-wire F16)', part(LINE, '', `${MIME}Content-ID: 1\n`), { contentId: '1' }],
    ['a Content-ID among the HTTP headers (batch-wire F16)', part(LINE, 'CONTENT-id:0.0\n'), inHttp('0.0')],
    ['the same Content-ID in both places (batch-wire F16)', part(LINE, 'Content-ID: <é>\n', `${MIME}Content-ID: <é>\n`), inHttp('<é>')],
    ['an empty Content-ID as no Content-ID (batch-wire F16)', part(LINE, '', `${MIME}Content-ID:\n`), {}],
    ['blank lines before the request line (batch-wire F17)', part(`\n\n\n${LINE}`), {}],
    ['a second blank line as part of the body (batch-wire F17)', part(LINE, '\n'), {}],
    ['a wrong Content-Length (batch-wire F19)', part(LINE, 'Content-Length: many\n'), {}],
    ['spaces and tabs in the request line (batch-wire F21)', part('POST \tAttendanceRecords \t HTTP/1.0 \n'), {}],
    ...['Return = "minimal"', 'respond-async; wait=10, Return = "Minimal"', 'x;return=minimal'].map((value) => [`Prefer ${value} (A4)`, part(LINE, `Prefer: ${value}\n`), { prefersMinimal: true }] as [string, string, object]),
    ...['return=representation', 'noreturn=minimal', 'return=minimalist', ''].map((value) => [`Prefer ${value} (A4)`, part(LINE, `Prefer: ${value}\n`), {}] as [string, string, object]),
    ...[['application/json', 'minimal'], ['a/b, application/json; ODATA.Metadata = "Full"', 'full'], ['application/json;odata.metadata=none', 'none'], ['application/json;odata.metadata=nonesuch', 'minimal'], ['application/json;metadata=full', 'full'], ['application/json;x.metadata=full', 'minimal']].map(([value = '', metadata]) => [`Accept ${value}`, part(LINE, `Accept: ${value}\n`), { metadata }] as [string, string, object]),
  ])('reads %s', (_, text, head) => {
    expect(decodePart(text)).toMatchObject({ ...plain, ...head })
  }) // prettier-ignore

  const faulty = (line: string): string => part(LINE, `${line}\n`)
  it.each([
    ['two transfer encodings (batch-wire F14)', part(LINE, '', `${MIME}Content-Transfer-Encoding: binary\nContent-Transfer-Encoding: 8bit\n`), 'ADP_PART_ENCODING'],
    ['two Content-IDs among the HTTP headers (batch-wire F16)', part(LINE, 'Content-ID: 2\nContent-ID: 1\n'), 'ADP_CONTENT_ID'],
    ['two Content-IDs among the MIME headers (batch-wire F16)', part(LINE, '', `${MIME}Content-ID: 1\nContent-ID: 2\n`), 'ADP_CONTENT_ID'],
    ['a Content-ID that is not UTF-8 (batch-wire F16)', part(LINE, '', `${MIME}Content-ID: \ufffd\n`), 'ADP_CONTENT_ID'],
    ['JSON in place of a request line (batch-wire F18)', part('{}'), 'ADP_REQUEST_LINE'],
    ['blank lines in place of a request line (batch-wire F18)', `${MIME}\n\n\n`, 'ADP_REQUEST_LINE'],
    ['a request line without an HTTP version (batch-wire F18)', part('POST AttendanceRecords\n'), 'ADP_REQUEST_LINE'],
    ['a control character in the target (batch-wire F21)', part('POST Attendance\u0001Records HTTP/1.1\n'), 'ADP_REQUEST_LINE'],
    ['a header without a colon (batch-wire F15)', faulty('nothing'), 'ADP_HEADER'],
    ['a folded line before any header (batch-wire F15)', part(LINE, '', ` folded: first\n${MIME}`), 'ADP_HEADER'],
    ['a space before the colon (batch-wire F15)', faulty('A : b'), 'ADP_HEADER'],
    ['a header without a name (batch-wire F15)', faulty(': b'), 'ADP_HEADER'],
    ['a NUL character in a header (batch-wire F15)', faulty('A: b\u0000'), 'ADP_HEADER'],
    ['a CR within a line (batch-wire F15)', faulty('A: b\rC'), 'ADP_HEADER'],
    ['a control character in a header (batch-wire F15)', faulty('A: b\u007f'), 'ADP_HEADER'],
    ['a control character in a folded line (batch-wire F15)', faulty('A: b\n c\u0001'), 'ADP_HEADER'],
    ['a request line with an absolute target among the headers (batch-wire F18)', part(LINE, '', `${MIME}POST http://host/x HTTP/1.1\n`), 'ADP_HEADER'],
    ['a long request line (batch-wire F27)', part(`POST AttendanceRecords?${'x'.repeat(70_000)} HTTP/1.1\n`), 'ADP_LIMIT'],
  ])('rejects %s', (_, text, code) => {
    const { code: found, at } = faultOf(() => decodePart(text))
    expect([found, at.part]).toEqual([code, 1])
  }) // prettier-ignore

  it.each(['utf-16', 'shift_jis', 'x-user-defined', 'no-such', '"'])('rejects a record in the charset %j (batch-wire F26)', (charset) => {
    const own = decodePart(part(LINE, `Content-Type: application/json;charset=${charset}\n`))
    expect(own?.faults?.map(({ code }) => code)).toEqual(['ADP_CHARSET'])
  }) // prettier-ignore
})

describe('decodeBatch, for the request target of a part', () => {
  const serviceHosts = new Set(['service.example', '::1'])
  /** Returns the code of the first fault of a record that is posted to this target. */
  const post = (target: string, options: DecodeOptions = { serviceHosts }): string | undefined =>
    decodePart(part(`POST ${target} HTTP/1.1\n`), options)?.faults?.[0]?.code

  it.each([
    'AttendanceRecords', '/AttendanceServiceFarm1/OData/V1/AttendanceRecords', 'AttendanceServiceFarm1/OData/V1/attendancerecords?a=../b',
    'http://service.example/x/AttendanceRecords', 'HTTPS://SERVICE.example:8443/x/AttendanceRecords#f', 'Attendance%52ecords', './AttendanceRecords',
    '/a..b/AttendanceRecords', '/a/AttendanceRecords/', 'http://service.example/x/AttendanceRecords/?a=b',
    'https://service.example/a@b/AttendanceRecords?c@d',
  ])('accepts %j as the collection AttendanceRecords (batch-wire F21)', (target) => {
    expect(post(target)).toBe('ADP_FIELD')
  }) // prettier-ignore

  it('refuses a POST to a single record (batch-wire F22)', () => {
    expect(post('AttendanceRecords(1d0f6e2c-7a3b-4c5d-8e9f-a0b1c2d3e4f5)')).toBe('ADP_METHOD')
  })

  it.each([
    '/Learners', 'AttendanceRecords//', 'AttendanceRecords(1', 'XAttendanceRecords', '*',
    '../AttendanceRecords', '/a/../AttendanceRecords', '/a/%2e%2E/AttendanceRecords', '/a/%252e%252e/AttendanceRecords',
    '/a%5c..%5cAttendanceRecords', '/a\\AttendanceRecords', '%', '%25', '%c0%af/AttendanceRecords',
    '//other.example/AttendanceRecords', 'http://other.example/AttendanceRecords', 'ftp://service.example/AttendanceRecords',
    'http://service.example@other.example/AttendanceRecords', 'http://', 'http://service.example:x/AttendanceRecords',
    'http://service.example/a/../AttendanceRecords', 'http://service.example', 'file:///AttendanceRecords',
    'http://service.example\\..\\AttendanceRecords', 'http://service.example?x=/AttendanceRecords',
  ])('rejects the target %j (batch-wire F21)', (target) => {
    expect(faultOf(() => post(target))).toMatchObject({ code: 'ADP_TARGET', at: { part: 1 } })
  }) // prettier-ignore

  it.each([
    'https://who:hidden@service.example/x/AttendanceRecords',
    'https://hidden@service.example/x/AttendanceRecords',
    'https://@service.example/AttendanceRecords',
    'https:/who:hidden@service.example/AttendanceRecords',
    'https://who:hid%40den@service.example/AttendanceRecords(1d0f6e2c-7a3b-4c5d-8e9f-a0b1c2d3e4f5)',
  ])('rejects the target %j without repeating its credentials in the error (batch-wire F21)', (target) => {
    for (const options of [{ serviceHosts }, {}])
      expect(() => post(target, options)).toThrow(
        /^The request line of a part has credentials in its URL(?!.*hid)/,
      )
  })

  it('accepts every host, but no other path, if no hosts are configured (batch-wire F21)', () => {
    for (const target of ['https://old.example/AttendanceRecords', 'http://[::1]:4010/x/AttendanceRecords/'])
      expect(post(target, {})).toBe('ADP_FIELD')
    for (const target of ['https://old.example/Learners', 'https://old.example/../AttendanceRecords', '//old.example/AttendanceRecords'])
      expect(faultOf(() => post(target, {})).code).toBe('ADP_TARGET')
  }) // prettier-ignore
})

describe('decodeBatch, for a part that follows another part', () => {
  const HTTP = `${LINE}Prefer: return=minimal\n`
  const withId = (id: string): string => part(HTTP, '', `${MIME}Content-ID: ${id}\n`)
  const both = (id: string, http: string): string => part(HTTP, http, `${MIME}Content-ID: ${id}\n`)
  /** Returns the head of the last part, or the code of the error if the batch is rejected. */
  const lastOf = (...parts: readonly string[]): unknown => {
    try {
      const { contentId, contentIdInHttp, prefersMinimal, start = 0, end = 0 } =
        decodeBatch(crlf(flat('B', ...parts)), HEADER).parts.at(-1) ?? {}
      return { contentId, contentIdInHttp, prefersMinimal, bytes: end - start }
    } catch (error) {
      return (error as { readonly code: unknown }).code
    }
  } // prettier-ignore

  it.each<readonly [first: string, second: string]>([
    ...['2', '10', '0.0', '<a@b>', '', '2 3', 'é', '\u007f', '1'.repeat(70_000)].map((id) => [withId('1'), withId(id)] as const),
    [part(HTTP), part(HTTP)],
    [part(HTTP, 'CONTENT-ID:1\n'), part(HTTP, 'CONTENT-ID:2\n')],
    [withId('1'), withId('2').replace('Prefer', 'Prefix')],
    [withId('1'), withId('2').replace('http', 'hTtp')],
    [withId('1 2'), withId('3 2')],
    [withId('é'), withId('é')],
    [withId('1 '), withId('2 ')],
    [withId('\n 1'), withId('\n 2')],
    [both('1', 'Content-ID: 1\n'), both('2', 'Content-ID: 1\n')],
    [withId('1\nContent-ID: 1'), withId('2\nContent-ID: 1')],
    [both('1', 'Content-ID:\n'), both('2', 'Content-ID:\n')],
    [withId('1'), withId('2').slice(0, 60)],
    [withId('1'), withId('234').slice(0, 44)],
    [withId('1'), MIME],
    [part(HTTP), `${MIME}\n${HTTP}`],
    [`${MIME}\n${HTTP}`, part(HTTP, 'Accept: x\n')],
    [`${MIME}\n${HTTP}A: b\n`, part(HTTP, 'A: bc\n')],
    [`${MIME}\n${HTTP}Content-ID: 1\n`, part(HTTP, 'Content-ID: 12\nA: b\n')],
  ])('reads the head of a part as it would read the part alone: %j, then %j', (first, second) => {
    expect(lastOf(first, second)).toEqual(lastOf(second))
  }) // prettier-ignore
})
