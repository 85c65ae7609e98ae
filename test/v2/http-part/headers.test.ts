import { describe, expect, it } from 'vitest'

import { readHeaders, valuesOf } from '../../../src/v2/http-part/headers.ts'
import { defaultBatchLimits } from '../../../src/v2/limits.ts'
import { crlf } from '../support/crlf.ts'
import { faultOf } from '../support/fault-of.ts'

const limits = { ...defaultBatchLimits, maxPartHeaderBytes: 60, maxHeaderLines: 3 }

function read(bytes: Buffer): ReturnType<typeof readHeaders> {
  return readHeaders(bytes, 0, bytes.length, limits, { part: 2 })
}

describe('readHeaders', () => {
  const rows: [text: string, lines: [string, string][], end: number, closed: boolean][] = [
    ['A: b\n\nbody', [['a', 'b']], 8, true],
    ['A:b\nC-d:\te \n\n', [['a', 'b'], ['c-d', 'e']], 16, true],
    ['A: b\n  c\n\td\n\n', [['a', 'b c d']], 17, true],
    ['A:\n b\n\n', [['a', 'b']], 10, true],
    ['A: b\n \n\n', [['a', 'b']], 11, true],
    ['A: é "x": y\n\n', [['a', 'é "x": y']], 16, true],
    ['A:\n\n', [['a', '']], 6, true],
    ['\nbody', [], 2, true],
    ['A: b\n', [['a', 'b']], 6, false],
    ['A: b', [['a', 'b']], 4, false],
    ['', [], 0, false],
  ] // prettier-ignore
  it.each(rows)('batch-wire F15: reads %j', (text, lines, end, closed) => {
    expect(read(crlf(text))).toEqual({ lines, end, closed })
  })

  it('batch-wire F1: reads lines with LF alone', () => {
    expect(read(Buffer.from('A: b\nC: d\r\n\nbody'))).toEqual({
      lines: [
        ['a', 'b'],
        ['c', 'd'],
      ],
      end: 12,
      closed: true,
    })
  })

  const refused: [text: string, offset: number][] = [
    ['A: b\nPOST x HTTP/1.1\n', 6],
    ['POST http://host/x HTTP/1.1\n', 0],
    [' folded: first\n', 0],
    ['A : b\n', 0],
    [': b\n', 0],
    ['A: b\u0000\n', 4],
    ['A: b\rC\n', 4],
    ['A: b\u007f\n', 4],
    ['A: b\n c\u0001\n', 8],
  ]
  it.each(refused)('batch-wire F15, F18: refuses %j', (text, offset) => {
    expect(faultOf(() => read(crlf(text)))).toEqual({ code: 'ADP_HEADER', at: { part: 2, offset } })
  })

  it.each([
    ['bytes', `A: ${'b'.repeat(54)}\n\n`, `A: ${'b'.repeat(56)}\n\n`, 0],
    ['lines', 'A: b\nA: b\nA: b\n\n', 'A: b\nA: b\nA: b\nA: b\n\n', 18],
    ['folded lines', 'A: b\n c\n d\n\n', 'A: b\n c\n d\n e\n\n', 14],
  ])('batch-wire F27: limits the %s', (_, accepted, refusedText, offset) => {
    expect(read(crlf(accepted)).closed).toBe(true)
    expect(faultOf(() => read(crlf(refusedText)))).toEqual({ code: 'ADP_LIMIT', at: { part: 2, offset } })
  })
})

describe('valuesOf', () => {
  it('gives all values of a header in order', () => {
    const { lines } = read(crlf('A: 1\nB: 2\na: 3\n\n'))
    expect(valuesOf(lines, 'a')).toEqual(['1', '3'])
    expect(valuesOf(lines, 'c')).toEqual([])
  })
})
