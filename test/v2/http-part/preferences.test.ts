import { describe, expect, it } from 'vitest'

import { readPreferences } from '../../../src/v2/http-part/head.ts'

describe('readPreferences', () => {
  const prefer: [prefer: string, prefersMinimal: boolean][] = [
    ['', false],
    ['return=representation', false],
    ['return=minimal', true],
    ['respond-async; wait=10, Return = "Minimal"', true],
    ['x;return=minimal', true],
    ['noreturn=minimal', false],
    ['return=minimalist', false],
  ]
  it.each(prefer)('Prefer %j: minimal %s', (text, prefersMinimal) => {
    expect(readPreferences(text, '')).toEqual({ prefersMinimal, metadata: 'minimal' })
  })

  const accept: [accept: string, metadata: string][] = [
    ['', 'minimal'],
    ['application/json', 'minimal'],
    ['application/json;odata.metadata=minimal', 'minimal'],
    ['a/b, application/json; ODATA.Metadata = "Full"', 'full'],
    ['application/json;odata.metadata=none', 'none'],
    ['application/json;odata.metadata=nonesuch', 'minimal'],
    ['application/json;metadata=full', 'full'],
    ['application/json;x.metadata=full', 'minimal'],
  ]
  it.each(accept)('Accept %j: %s', (text, metadata) => {
    expect(readPreferences('', text)).toEqual({ prefersMinimal: false, metadata })
  })
})
