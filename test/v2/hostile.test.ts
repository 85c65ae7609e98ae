import { describe, expect, it } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import { decodeBatch, decodeRecord, openBatchDecoding } from '../../src/v2/index.ts'

/** Large enough that work which grows with the square of the input cannot end within a test's time. */
const SIZE = 8 * 1024 * 1024
const fill = (piece: string): string => piece.repeat(Math.ceil(SIZE / piece.length))

const MIME = '--b\nContent-Type: application/http\n'
const LINE = 'POST AttendanceRecords HTTP/1.1\n'
const record = (json: string): string => `${MIME}\n${LINE}\n${json}\n--b--\n`

/** The number of parts with a record, or the code of the error. */
function outcome(text: string, boundary: string): number | string {
  try {
    return decodeBatch(Buffer.from(text), `multipart/mixed; boundary="${boundary}"`).parts.length
  } catch (error) {
    if (error instanceof AdapterError) return error.code
    throw error
  }
}

describe('decodeBatch reads hostile input in linear time', () => {
  const rows: [what: string, expected: number | string, text: () => string, boundary?: string][] = [
    ['lines that nearly are delimiters', 'ADP_LIMIT', () => record(`{}\n${fill('--bb\n')}`)],
    ['lines that nearly are delimiters before the first', 'ADP_LIMIT', () => fill('--bb\n')],
    ['delimiters with text behind', 'ADP_LIMIT', () => record(`{}\n${fill('--b x\n')}`)],
    ['delimiters with blanks and text behind', 'ADP_LIMIT', () => record(`{}\n${fill(`--b${' '.repeat(250)}x\n`)}`)],
    ['delimiters within a line', 1, () => record(`{}\n${fill('x--b--')}`)],
    ['a row of dashes, the boundary is dashes', 'ADP_TRUNCATED', () => `-------\n${fill('-')}`, '-----'],
    ['short rows of dashes, the boundary is dashes', 'ADP_LIMIT', () => `-------\n${fill('--------\n')}`, '-----'],
    ['a boundary of 70 characters, nearly repeated', 1, () => record(`{}\n${fill(`--${'b'.repeat(69)}\n`)}`).replaceAll(/^--b(?=$|--$)/gm, `--${'b'.repeat(70)}`), 'b'.repeat(70)],
    ['opening lines that look like headers', 'ADP_TRUNCATED', () => `${Array.from({ length: 75_000 }, (_, n) => `--a${n}:`).join('\n')}\n`],
    ['opening lines of many boundaries', 'ADP_LIMIT', () => Array.from({ length: SIZE / 8 }, (_, n) => `--a${n}\n--a${n}--\n`).join('')],
    ['delimiters without parts', 'ADP_PART_TYPE', () => `${fill('--b\n')}--b--`],
    ['empty changesets', 'ADP_TOO_LARGE', () => `${fill('--b\nContent-Type: multipart/mixed; boundary=c\n\n--c--\n')}--b--`],
    ['a boundary line with long padding', 'ADP_LIMIT', () => `--b${fill(' ')}\n--b--`],
    ['a header line without end', 'ADP_LIMIT', () => `--b\nA: ${fill('x')}\n--b--`],
    ['a header name without end', 'ADP_LIMIT', () => `--b\n${fill('x')}\n--b--`],
    ['a request line without end', 'ADP_LIMIT', () => `${MIME}\nPOST ${fill('x')} HTTP/1.1\n\n{}\n--b--`],
    ['many header lines', 'ADP_LIMIT', () => `--b\n${fill('A: b\n')}\n--b--`],
    ['many folded lines', 'ADP_LIMIT', () => `--b\nA: b\n${fill(' c\n')}\n--b--`],
    ['parts with many folded lines', 'ADP_LIMIT', () => `${fill(`${MIME}${' c\n'.repeat(20_000)}\n`)}--b--`],
    ['blank lines before the request line', 'ADP_LIMIT', () => `${MIME}\n${fill('\n')}${LINE}\n{}\n--b--`],
    ['blank lines before the JSON', 1, () => record(fill('\n'))],
    ['a preamble of blank lines', 1, () => fill('\n') + record('{}')],
    ['an epilogue of delimiters', 1, () => record('{}') + fill('--b\n')],
    ['JSON that nests deep', 1, () => record(`{"a":${fill('[')}`)],
    ['JSON that nests deep in objects', 1, () => record(fill('{"a":'))],
    ['JSON with many members', 1, () => record(`{${Array.from({ length: SIZE / 16 }, (_, n) => `"a${n}":1`).join()}}`)],
    ['a member with many members', 1, () => record(`{"a":{${Array.from({ length: SIZE / 16 }, (_, n) => `"a${n}":1`).join()}}}`)],
    ['a string of escapes', 1, () => record(`{"Comment":"${fill('\\u0041')}"}`)],
    ['a string that never ends', 1, () => record(`{"Comment":"${fill('x')}`)],
    ['a long number', 1, () => record(`{"MinutesLate":${fill('1')}}`)],
    ['a long percent encoding', 'ADP_TARGET', () => `${MIME}\nPOST ${'%25'.repeat(20_000)} HTTP/1.1\n\n{}\n--b--`],
    ['a long Prefer', 1, () => `${MIME}\n${LINE}Prefer: ${' return'.repeat(9_000)}\n\n{}\n--b--`],
  ] // prettier-ignore
  it.each(rows)('%s', (_, expected, text, boundary = 'b') => {
    expect(outcome(text(), boundary)).toBe(expected)
  })

  const costly: [what: string, json: string, message: string][] = [
    ['members', `{${Array.from({ length: 1_001 }, (_, n) => `"a${n}":1`).join()}}`, 'The record has more than 1000 members and array elements.'],
    ['members of a nested value', `{"a":{${Array.from({ length: 1_000 }, (_, n) => `"a${n}":1`).join()}}}`, 'The record has more than 1000 members and array elements.'],
    ['array elements', `{"a":[${'1,'.repeat(1_000)}1]}`, 'The record has more than 1000 members and array elements.'],
    ['escapes', `{"Comment":"${'\\n'.repeat(65_537)}"}`, 'The record has more than 65536 backslash escapes.'],
    ['escapes of several strings', `{"Comment":"${'\\n'.repeat(40_000)}","b":"${'\\n'.repeat(40_000)}"}`, 'The record has more than 65536 backslash escapes.'],
  ] // prettier-ignore
  it.each(costly)('batch-wire F27: refuses a record with too many %s', (_, json, message) => {
    expect(decodeRecord(json).faults).toEqual([{ code: 'ADP_RECORD_LIMIT', message }])
  })

  it('batch-wire F27: refuses a record of more bytes than one part may have, and takes the others', () => {
    const part = (bytes: number): string => `${MIME}\n${LINE}\n${' '.repeat(bytes - 2)}{}\n`
    const text = part(1_048_577) + part(1_048_576) + part(2)
    const { parts } = decodeBatch(Buffer.from(`${text}--b--`), 'multipart/mixed; boundary=b')
    expect(parts.map(({ faults }) => faults?.[0])).toEqual([
      { code: 'ADP_RECORD_LIMIT', message: 'Part 1 has a record of 1.1 MiB, the limit is 1 MiB.' },
      { code: 'ADP_FIELD', message: 'Present is required.' },
      { code: 'ADP_FIELD', message: 'Present is required.' },
    ])
  })

  it('decodes in shares of the work, to the same batch', () => {
    const one = `${MIME}\n${LINE}\n{}\n`
    const nested = (n: number): string =>
      `--b\nContent-Type: multipart/mixed; boundary=c${n}\n\n${one.replace('--b', `--c${n}`)}--c${n}--\n`
    const text = `${one.repeat(1_000)}${Array.from({ length: 1_000 }, (_, n) => nested(n)).join('')}--b--`
    const bytes = Buffer.from(text)
    const decoding = openBatchDecoding(bytes, 'multipart/mixed; boundary=b')
    let shares = 1
    while (!decoding.advance(100 * 1_024)) shares += 1
    // A small part counts 1,024 bytes, a changeset as much.
    expect(shares).toBe(30 + 1)
    expect(decoding.batch()).toEqual(decodeBatch(bytes, 'multipart/mixed; boundary=b'))
  })

  it('searches the boundary in shares of the work', () => {
    const bytes = Buffer.from(`${'--a\n'.repeat(75_000)}--b\n${LINE}`)
    const decoding = openBatchDecoding(bytes, 'multipart/mixed; boundary=b')
    let shares = 0
    const share = (): boolean => decoding.advance(1_048_576)
    expect(() => {
      while (!share()) shares += 1
    }).toThrow(AdapterError)
    // Two searches through 75,000 lines, 2,000 lines a share.
    expect(shares).toBeGreaterThanOrEqual(70)
  })

  it('batch-wire F27: takes the most records that a batch may hold, and no more', () => {
    const parts = (count: number): string => `${`${MIME}\n${LINE}\n{}\n`.repeat(count)}--b--`
    expect(outcome(parts(20_000), 'b')).toBe(20_000)
    expect(outcome(parts(20_001), 'b')).toBe('ADP_TOO_LARGE')
  })
})
