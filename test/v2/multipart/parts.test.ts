import { describe, expect, it } from 'vitest'

import { splitParts } from '../../../src/v2/multipart/parts.ts'
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
