import { describe, expect, it } from 'vitest'

import { createPathTest, segmentsOf } from '../../src/proxy/path-pattern.ts'

describe('createPathTest', () => {
  const rows: [pattern: string, fitting: string[], others: string[]][] = [
    ['/V3/x', ['/V3/x', '/v3/X', '/V3/x/'], ['/V3', '/V3/x/y', '/a/V3/x', '/V3/xx']],
    ['/V3/*', ['/V3/x', '/V3/x/'], ['/V3', '/V3/', '/V3/x/y']],
    ['/V3/a*c', ['/V3/ac', '/V3/abc', '/V3/abcbc'], ['/V3/ab', '/V3/a/c']],
    ['/V3/*a*b*', ['/V3/ab', '/V3/xaxbx'], ['/V3/ba']],
    ['/V3/Things(*)', ['/V3/Things(1)', '/V3/Things()'], ['/V3/Things']],
    ['/**/x', ['/x', '/a/x', '/a/b/x'], ['/x/y', '/ax']],
    ['/V3/**', ['/V3/', '/V3/x', '/V3/x/y/'], ['/V3', '/V31/x']],
    ['/**/V3/**/x', ['/V3/x', '/a/V3/b/c/x'], ['/V3/', '/a/x']],
    ['/**', ['/', '/x', '/x/y'], []],
    ['/$metadata', ['/$metadata'], ['/metadata']],
    ['/a.b+c', ['/a.b+c'], ['/aXbc', '/a.bbc']],
  ]
  it.each(rows)('matches exactly the expected paths for the pattern %s', (pattern, fitting, others) => {
    const isFitting = createPathTest(pattern)
    expect([...fitting, ...others].filter((path) => isFitting(segmentsOf(path)))).toEqual(fitting)
  })

  it.each([
    ['/*a*a*a*a*a*a*a*z', `/${'a'.repeat(2_047)}`],
    [`/${'*a'.repeat(200)}*z`, `/${'a'.repeat(2_047)}`],
    [`${'/**/a'.repeat(20)}/z`, '/a'.repeat(64)],
    [`${'/**/*a*'.repeat(20)}/z`, `/${'a'.repeat(31)}`.repeat(64)],
  ])(
    'takes at most as many steps as the product of the pattern and path lengths for the pattern %s',
    (pattern, path) => {
      // A path test that tried every way to divide the path would practically never end.
      expect(createPathTest(pattern)(segmentsOf(path))).toBe(false)
    },
  )
})
