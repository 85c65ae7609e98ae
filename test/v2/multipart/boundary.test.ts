import { describe, expect, it } from 'vitest'

import { isBoundary, readBoundary } from '../../../src/v2/multipart/parts.ts'
import { faultOf } from '../support/fault-of.ts'

const LONGEST = 'b'.repeat(70)

describe('readBoundary', () => {
  const accepted: [contentType: string, boundary: string][] = [
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
  ]
  it.each(accepted)('batch-wire F5, F31: reads %j', (contentType, boundary) => {
    expect(readBoundary(contentType)).toBe(boundary)
  })

  const refused: [contentType: string | undefined, code: string][] = [
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
    ['multipart', 'ADP_HEADER'],
  ]
  it.each(refused)('batch-wire F5 to F7: refuses %j with %s', (contentType, code) => {
    expect(faultOf(() => readBoundary(contentType, { part: 3 }))).toEqual(
      code === 'ADP_HEADER' ? { code, at: {} } : { code, at: { part: 3 } },
    )
  })
})

describe('isBoundary', () => {
  it.each(['', 'a\n', 'a ', ' ', 'é', 'b'.repeat(201)])('refuses %j', (text) => {
    expect(isBoundary(text)).toBe(false)
  })
})
