import { describe, expect, it } from 'vitest'

import {
  contentEnd,
  createDelimiterFinder,
  type Delimiter,
  splitParts,
} from '../../../src/v2/multipart/parts.ts'
import { faultOf } from '../support/fault-of.ts'

function split(text: string, changeset?: number): string[] {
  const bytes = Buffer.from(text)
  const at = changeset === undefined ? {} : { changeset }
  const parts = splitParts(bytes, 'b', 0, bytes.length, { maxPadding: 8, at })
  return [...parts].map(({ start, end }) => bytes.toString('latin1', start, end))
}

describe('splitParts', () => {
  const rows: [what: string, text: string, parts: string[]][] = [
    ['two parts', '--b\none\n--b\ntwo\n--b--\n', ['one', 'two']],
    ['preamble and epilogue (F3)', 'pre\n\n--b\r\none\r\n--b--\r\nepi\n--b\nx\n--b--\n', ['one']],
    ['mixed line ends (F1)', '--b\none\r\n--b\r\ntwo\n--b--', ['one', 'two']],
    ['blank lines inside (F20)', '--b\n\none\n\n\n--b--', ['\none\n\n']],
    ['an empty body, closed at once (F11)', '--b--', []],
    ['an empty body with a blank line (F11)', '--b\n \t\r\n\n--b--', []],
    ['an empty body with nothing between (F11)', '--b\n--b--', []],
    ['a blank part among others', '--b\n\n--b\none\n--b--', ['', 'one']],
    ['a blank last part', '--b\none\n--b\n\n--b--', ['one', '']],
  ]
  it.each(rows)('yields %s', (_, text, parts) => {
    expect(split(text)).toEqual(parts)
  })

  it('batch-wire F8: refuses a body without delimiter or without closing delimiter', () => {
    expect(faultOf(() => split('prose'))).toEqual({ code: 'ADP_TRUNCATED', at: { offset: 0 } })
    expect(faultOf(() => split('--b\none\n', 2))).toEqual({
      code: 'ADP_TRUNCATED',
      at: { changeset: 2, offset: 8 },
    })
  })
})

function findAll(text: string, boundary: string, from = 0, to = text.length): Delimiter[] {
  const find = createDelimiterFinder(Buffer.from(text), boundary, 8)
  const found: Delimiter[] = []
  for (let next = find(from, to); next !== undefined; next = find(next.end, to)) found.push(next)
  return found
}

describe('createDelimiterFinder', () => {
  const rows: [what: string, text: string, found: Delimiter[]][] = [
    ['CRLF', '--b\r\nx', [{ start: 0, end: 5, closing: false }]],
    ['LF', '--b\nx', [{ start: 0, end: 4, closing: false }]],
    ['the end of the body', 'x\n--b--', [{ start: 2, end: 7, closing: true }]],
    ['the end of the body after CR', '--b--\r', [{ start: 0, end: 6, closing: true }]],
    ['the end of the body, not closed', '--b', [{ start: 0, end: 3, closing: false }]],
    ['blanks and tabs at the end', '--b-- \t\r\n', [{ start: 0, end: 9, closing: true }]],
    ['one right after another', '--b\n--b--\n', [{ start: 0, end: 4, closing: false }, { start: 4, end: 10, closing: true }]],
    ['a longer line', '--bx\n--b \n', [{ start: 5, end: 10, closing: false }]],
    ['a line with text behind', '--b x\n--b--x\n--b- \n', []],
    ['text before it', 'x--b\n\r--b\n', []],
    ['a closing line with one dash too many', '--b---\n', []],
  ] // prettier-ignore
  it.each(rows)('batch-wire F1, F2, F4: %s', (_, text, found) => {
    expect(findAll(text, 'b')).toEqual(found)
  })

  it('keeps within its range', () => {
    expect(findAll('--b\n--b--\n--b\n', 'b', 4, 10)).toEqual([{ start: 4, end: 10, closing: true }])
    expect(findAll('--boundary\n', 'boundary', 0, 6)).toEqual([])
    expect(findAll('--b--\n', 'b', 0, 4)).toEqual([])
  })

  it('takes the start of its range for the start of a line', () => {
    expect(findAll('x--b\n', 'b', 1)).toEqual([{ start: 1, end: 5, closing: false }])
  })

  it('batch-wire F27: limits the blanks at the end', () => {
    expect(findAll(`--b${' '.repeat(8)}\n`, 'b')).toHaveLength(1)
    expect(faultOf(() => findAll(`x\n--b${' '.repeat(9)}\n`, 'b'))).toEqual({
      code: 'ADP_LIMIT',
      at: { offset: 2 },
    })
  })
})

describe('contentEnd', () => {
  const rows: [text: string, from: number, end: number][] = [
    ['x\r\n', 0, 1],
    ['x\n', 0, 1],
    ['x\n\n', 0, 2],
    ['\r\n', 0, 0],
    ['\r\n', 1, 1],
    ['\r\n', 2, 2],
  ]
  it.each(rows)('leaves the line end of %j from %i to the delimiter', (text, from, end) => {
    expect(contentEnd(Buffer.from(text), from, text.length)).toBe(end)
  })
})
