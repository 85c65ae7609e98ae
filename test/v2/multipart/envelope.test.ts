import { describe, expect, it } from 'vitest'

import { defaultBatchLimits } from '../../../src/v2/limits.ts'
import { chooseBoundary } from '../../../src/v2/multipart/envelope.ts'
import { crlf } from '../support/crlf.ts'
import { faultOf } from '../support/fault-of.ts'

const HTTP = 'Content-Type: application/http\n\nx\n'
const mixed = (boundary: string): string => `Content-Type: multipart/mixed; boundary=${boundary}\n\n`
/** A batch `B` of two changesets, `C1` and `C2`. */
const TWO = `--B\n${mixed('C1')}--C1\n${HTTP}--C1--\n--B\n${mixed('C2')}--C2\n${HTTP}--C2--\n--B--\n`
const FLAT = (boundary: string): string => `--${boundary}\n${HTTP}--${boundary}--\n`

function choose(text: string, header: string, maxParts = 20): string {
  const steps = chooseBoundary(crlf(text), header, 0, { ...defaultBatchLimits, maxParts })
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}

describe('chooseBoundary', () => {
  const chosen: [what: string, text: string, header: string, boundary: string][] = [
    ['the header names the batch', TWO, 'B', 'B'],
    ['the header names the batch, after blank lines', `\n\n${TWO}`, 'B', 'B'],
    ['the header names the batch, after a preamble with dashes', `a -- b\n--\n--note\n${TWO}`, 'B', 'B'],
    ['the header names the first changeset', TWO, 'C1', 'B'],
    ['the header names the last changeset', TWO, 'C2', 'B'],
    ['the header names nothing in the body', TWO, 'other', 'B'],
    ['the header names nothing, prose comes first', `Hello\n--note\n${TWO}`, 'other', 'B'],
    ['blanks follow the delimiters', TWO.replaceAll(/^--B(--)?$/gm, '--B$1 \t'), 'other', 'B'],
    ['the header names a flat batch', FLAT('B'), 'B', 'B'],
    ['the header names nothing, the batch is flat', FLAT('B'), 'other', 'B'],
    ['the batch closes without a line end', TWO.trimEnd(), 'C1', 'B'],
    ['a long line of dashes stands in the preamble', `--${'-'.repeat(500)}\n${TWO}`, 'C1', 'B'],
    ['a line that no boundary can be stands in the preamble', `--{}\n${TWO}`, 'other', 'B'],
  ]
  it.each(chosen)('batch-wire F12: %s', (_, text, header, boundary) => {
    expect(choose(text, header)).toBe(boundary)
  })

  const cutBatch = TWO.slice(0, TWO.indexOf('--B--'))
  const refused: [what: string, text: string, header: string, offset: number][] = [
    ['nothing', '', 'B', 0],
    ['prose', 'Hello\n--note\nx', 'B', 16],
    ['a batch that is never closed, the header names its changeset', cutBatch, 'C1', 0],
    ['a batch that is never closed, the header names its last changeset', cutBatch, 'C2', 0],
    ['a batch that is never closed, the header names nothing', cutBatch, 'other', 0],
    ['a second whole envelope before the own one', FLAT('A') + FLAT('B'), 'B', 0],
    ['a second whole envelope, the header names nothing', FLAT('A') + FLAT('B'), 'other', 0],
  ]
  it.each(refused)('batch-wire F8, F12: refuses %s', (_, text, header, offset) => {
    expect(faultOf(() => choose(text, header))).toEqual({ code: 'ADP_TRUNCATED', at: { offset } })
  })

  const openers = [
    'Content-Type: multipart/mixed; boundary=C1\nContent-Length: 9\n',
    'Content-Length: 9\nContent-Type: multipart/mixed; boundary=C1\n',
    'X-Folded: a\n b\nDate:\ncontent-type:multipart/mixed;boundary=C1\n',
    'Content-ID : 1\n',
    'content-transfer-encoding\t: binary\n',
  ]
  it.each(openers)('batch-wire F12: knows the unclosed envelope by its headers: %j', (head) => {
    const text = `--B\n${head}\n--C1\n${HTTP}--C1--\n`
    expect(faultOf(() => choose(text, 'C1'))).toEqual({ code: 'ADP_TRUNCATED', at: { offset: 0 } })
  })

  it.each(['', '\n', 'see below: nothing\n', 'Note: this\nis prose, Content-Type: none\n'])(
    'batch-wire F12: takes a dashed line above %j for preamble',
    (line) => {
      expect(choose(`--note\n${line}${FLAT('B')}`, 'B')).toBe('B')
    },
  )

  it('batch-wire F27: limits the lines that may be delimiters', () => {
    const lines = Array.from({ length: 143 }, (_, n) => `--t${n}\n`)
    expect(choose(lines.slice(1).join('') + FLAT('B'), 'B')).toBe('B')
    expect(faultOf(() => choose(lines.join('') + FLAT('B'), 'B'))).toEqual({
      code: 'ADP_LIMIT',
      at: { offset: crlf(lines.join('') + FLAT('B')).lastIndexOf('--B') },
    })
  })
})
