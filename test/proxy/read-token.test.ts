import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { decodeReadToken, encodeReadToken, type ReadToken } from '../../src/proxy/read-token.ts'

const tokens = fc.record({
  query: fc.string(),
  rest: fc.option(fc.nat(), { nil: undefined }),
  window: fc.nat(41),
  link: fc.option(fc.string(), { nil: undefined }),
  offset: fc.nat(),
})
const token: ReadToken = { query: '$filter=true', rest: 5, window: 1, link: '$skiptoken=7', offset: 3 }
const refusal = expect.objectContaining({ code: 'ADP_QUERY', status: 400 }) as Error

describe('a next link', () => {
  it('comes back as it was written, with the same key', () => {
    fc.assert(
      fc.property(tokens, fc.string(), (own, key) => {
        expect(decodeReadToken(encodeReadToken(own, key), key)).toEqual(own)
      }),
    )
  })

  it('is refused when any of its characters is another, or missing', () => {
    const text = encodeReadToken(token, 'key')
    for (let at = 0; at < text.length; at += 1) {
      const other = text[at] === 'A' ? 'B' : 'A'
      for (const altered of [text.slice(0, at) + other + text.slice(at + 1), text.slice(0, at)])
        expect(() => decodeReadToken(altered, 'key')).toThrow(refusal)
    }
  })

  it.each([
    ['another key', encodeReadToken(token, 'other')],
    ['characters of no token', '$%&'],
    ['more than a link can have', 'A'.repeat(70_000)],
  ])('is refused with %s', (_name, text) => {
    expect(() => decodeReadToken(text, 'key')).toThrow(refusal)
  })
})
