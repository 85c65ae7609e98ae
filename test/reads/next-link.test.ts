import { createHmac, randomBytes } from 'node:crypto'
import { deflateRawSync } from 'node:zlib'

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { decodeNextLink, encodeNextLink, type NextLink } from '../../src/reads/read-page.ts'

const tokens = fc.record({
  query: fc.string(),
  rest: fc.option(fc.nat(), { nil: undefined }),
  window: fc.nat(41),
  link: fc.option(fc.stringMatching(/^[!-~]+$/), { nil: undefined }),
  given: fc.stringMatching(/^[\w-]*$/),
})
const token: NextLink = { query: '$filter=true', rest: 5, window: 1, link: '$skiptoken=7', given: 'AbC-_9' }
const refusal = expect.objectContaining({ code: 'ADP_QUERY', status: 400 }) as Error

const signer = { secret: Buffer.from('secret of the adapter'), owner: 'acme' }

/** Creates a token with a valid signature around any state, as an attacker who knows the secret could. */
function signed(state: Buffer): string {
  const key = createHmac('sha256', signer.secret)
    .update('markbridge next link ')
    .update(signer.owner)
    .digest()
  const signature = createHmac('sha256', key).update(state).digest().subarray(0, 16)
  return Buffer.concat([signature, state]).toString('base64url')
}

const signedJson = (value: unknown): string => signed(deflateRawSync(JSON.stringify(value)))

describe('the token of a next link', () => {
  it('is decoded to the encoded state if secret and owner are the same', () => {
    fc.assert(
      fc.property(tokens, fc.string(), (own, owner) => {
        const mine = { ...signer, owner }
        expect(decodeNextLink(encodeNextLink(own, mine), mine)).toEqual(own)
      }),
    )
    expect(decodeNextLink(signedJson(['q', null, 0, null, '']), signer).query).toBe('q')
  })

  it('is refused if any of its characters is changed or missing', () => {
    const text = encodeNextLink(token, signer)
    for (let at = 0; at < text.length; at += 1) {
      const other = text[at] === 'A' ? 'B' : 'A'
      for (const altered of [text.slice(0, at) + other + text.slice(at + 1), text.slice(0, at)])
        expect(() => decodeNextLink(altered, signer)).toThrow(refusal)
    }
  })

  it.each([
    ['another secret', encodeNextLink(token, { ...signer, secret: Buffer.from('client-key') })],
    ['another owner', encodeNextLink(token, { ...signer, owner: 'other' })],
    ['invalid characters', '$%&'],
    ['an empty text', ''],
    ['too many characters', 'A'.repeat(120_000)],
    ['a state that cannot be inflated', signed(Buffer.from('no deflate'))],
    ['a state that inflates to too much', signed(deflateRawSync(Buffer.alloc(10_000_000)))],
    ['a state that is not JSON', signed(deflateRawSync('{'))],
    ['a state that is not a list', signedJson({ query: 'q' })],
    ['an empty state', signedJson([])],
    ['a query that is not a text', signedJson([1, null, 0, null, ''])],
    ['a negative rest', signedJson(['q', -1, 0, null, ''])],
    ['a rest that is not an integer', signedJson(['q', 1.5, 0, null, ''])],
    ['a negative window', signedJson(['q', null, -1, null, ''])],
    ['a window that is a text', signedJson(['q', null, '0', null, ''])],
    ['a number of rows in place of the rows', signedJson(['q', null, 0, null, 7])],
    ['rows that cannot be read', signedJson(['q', null, 0, null, 'a b'])],
    ['a link that is not a text', signedJson(['q', null, 0, {}, ''])],
    ['an empty link', signedJson(['q', null, 0, '', ''])],
    ['a link with a line end', signedJson(['q', null, 0, 'a\r\nX: y', ''])],
  ])('is refused if it has %s', (_name, text) => {
    expect(() => decodeNextLink(text, signer)).toThrow(refusal)
  })

  it('is not created if the query is too long for a token', () => {
    const query = `$filter=${randomBytes(90_000).toString('base64')}`
    expect(() => encodeNextLink({ ...token, query }, signer)).toThrow(refusal)
  })
})
