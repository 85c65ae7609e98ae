import { describe, expect, it } from 'vitest'

import { parseConfig, Secret } from '../../src/config/index.ts'

const parse = (...records: unknown[]) =>
  parseConfig({
    upstreams: { v3: { baseUrl: 'http://127.0.0.1:1' } },
    partners: records.map((record, n) => ({
      id: `p${n}`,
      match: { header: { name: 'x', value: `v${n}` } },
      record,
    })),
  })
const key = new Secret('0c'.repeat(32))

describe('partners[].record', () => {
  it('has defaults, and is left out by default', () => {
    expect(parse({ to: './a', key }, undefined).partners.map(({ record }) => record)).toEqual([
      { to: './a', key, maxBytes: 1_000_000_000 },
      undefined,
    ])
    expect(parse({ to: './a', pseudonyms: { key } }).partners[0]?.record?.pseudonyms).toEqual({ key })
  })

  it.each([
    [[{ to: './a' }], /partners\[0\]\.record: must have key \(encrypted\) or pseudonyms, and not both/],
    [[{ to: './a', key, pseudonyms: true }], /and not both/],
    [[{ key }], /partners\[0\]\.record\.to/],
    [[{ to: './a', key: '0c'.repeat(32) }], /must be \{ env: NAME \} or \{ file: path \}, never the key itself/],
    [[{ to: './a', key: new Secret('short') }], /must be 32 bytes/],
    [[{ to: './a', pseudonyms: false }], /must be true, or \{ key/],
    [[{ to: './a', key, maxByte: 3 }], /did you mean maxBytes/],
    [[{ to: './a', key }, { to: 'b/../a/', key }], /partners\[1\]\.record\.to: is the folder of partners\[0\] as well/],
  ])('refuses %j', (records, text) => {
    expect(() => parse(...records)).toThrow(text)
  }) // prettier-ignore
})
