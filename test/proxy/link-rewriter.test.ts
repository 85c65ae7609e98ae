import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { LinkRewriter } from '../../src/proxy/link-rewriter.ts'

const from = 'https://v3.test/sims'
const to = 'http://adapter.test'
const requested = `${from}/V3/Sets`

function rewrite(chunks: readonly (string | Buffer)[]): string {
  const rewriter = new LinkRewriter({ rewritings: [{ from, to }], requested })
  const pieces = chunks.map((chunk) => Buffer.from(rewriter.write(Buffer.from(chunk))))
  return Buffer.concat([...pieces, rewriter.write(Buffer.alloc(0), true)]).toString('utf8')
}

describe('LinkRewriter', () => {
  const rows: [text: string, expected: string][] = [
    [`{"@odata.nextLink":"${from}/a?$skip=1"}`, `{"@odata.nextLink":"${to}/a?$skip=1"}`],
    [`{"@odata.context" : "${from}"}`, `{"@odata.context" : "${to}"}`],
    [`{"@odata.context":"${from}#x","a@odata.deltaLink":\n"${from}?y"}`, `{"@odata.context":"${to}#x","a@odata.deltaLink":\n"${to}?y"}`],
    [`[{"Contacts@odata.nextLink":"${from}/b"},{"Contacts@odata.nextLink":"${from}/c"}]`, `[{"Contacts@odata.nextLink":"${to}/b"},{"Contacts@odata.nextLink":"${to}/c"}]`],
    [`{"odata.nextLink":"${from}/x","@nextLink":"${from}/y","odata.metadata":"${from}/$metadata"}`, `{"odata.nextLink":"${to}/x","@nextLink":"${to}/y","odata.metadata":"${to}/$metadata"}`],
    [`{"d":{"results":[],"__next":"${from}/a?$skip=1"}}`, `{"d":{"results":[],"__next":"${to}/a?$skip=1"}}`],
    [`{"@context":"${from}/$metadata","B@id":"${from}/B"}`, `{"@context":"${to}/$metadata","B@id":"${to}/B"}`],
    [`{"@odata.nextLink":"${from.replaceAll('/', '\\/')}\\/a"}`, `{"@odata.nextLink":"${to}\\/a"}`],
    ['{"@odata.nextLink":"http://inner.test:5000/V3/Sets?$skiptoken=1"}', `{"@odata.nextLink":"${to}/V3/Sets?$skiptoken=1"}`],
    ['{"__next":"https://other.test/sims/v3/S%65ts?x"}', `{"__next":"${to}/V3/Sets?x"}`],
    [`{"@odata.id":"${from}/A(1)","@odata.editLink":"A(1)","B@odata.navigationLink":"${from}/A(1)/B"}`, `{"@odata.id":"${to}/A(1)","@odata.editLink":"A(1)","B@odata.navigationLink":"${to}/A(1)/B"}`],
  ] // prettier-ignore
  it.each(rows)('rewrites the links in %s', (text, expected) => {
    expect(rewrite([text])).toBe(expected)
  })

  it.each([
    `{"@odata.context":"https://other.test/sims/$metadata"}`,
    `{"@odata.context":"${from}-two/$metadata"}`,
    `{"@odata.type":"${from}/x"}`,
    `{"nextLink":"${from}/x","id":"${from}/x","context":"${from}/x"}`,
    '{"@odata.nextLink":"http://inner.test/V3/SetsOther?x"}',
    '{"@odata.nextLink":"http://inner.test/V3/Sets/1?x"}',
    '{"@odata.context":"http://inner.test/V3/Sets"}',
    `{"Comment":"see ${from}/x"}`,
    `{"Comment":"\\"@odata.nextLink\\":\\"${from}/x\\""}`,
    `{"a":"@odata.nextLink","b":"${from}/x"}`,
    `{"@odata.nextLink":null,"b":"${from}/x"}`,
    `{"@odata.nextLink":"${from.slice(0, -1)}`,
    '{"@odata.nextLink',
    '',
    '"',
    '\u00e9\u{1f600}',
  ])('leaves %s unchanged', (text) => {
    expect(rewrite([text])).toBe(text)
  })

  it('returns the same bytes if the body is split into chunks at any place', () => {
    const text = rows.map(([body]) => `${body}"caf\u00e9 \u{1f600}\\"@odata."`).join(',')
    const expected = rewrite([text])
    const bytes = Buffer.from(text)
    for (let cut = 0; cut <= bytes.length; cut += 1) {
      expect(rewrite([bytes.subarray(0, cut), bytes.subarray(cut)])).toBe(expected)
    }
    expect(rewrite(Array.from(bytes, (byte) => Buffer.of(byte)))).toBe(expected)
  })

  it('returns the same bytes for random text in random chunks', () => {
    const piece = fc.constantFrom(
      '"',
      '@odata.',
      'nextLink',
      'context',
      '":"',
      '" : "',
      from,
      '/x',
      '\\',
      '\\"',
      'a',
      '\u00e9',
      ' ',
      '{',
      ',',
    )
    const texts = fc.array(piece, { maxLength: 30 }).map((pieces) => pieces.join(''))
    fc.assert(
      fc.property(texts, fc.array(fc.nat(120), { maxLength: 6 }), (text, cuts) => {
        const bytes = Buffer.from(text)
        const ends = [...cuts, 0, bytes.length]
          .map((cut) => Math.min(cut, bytes.length))
          .sort((one, other) => one - other)
        const chunks = ends.slice(1).map((end, index) => bytes.subarray(ends[index], end))
        expect(rewrite(chunks)).toBe(rewrite([text]))
      }),
      { numRuns: 500 },
    )
  })

  it('rewrites the base address of a long link before the rest of the link has arrived', () => {
    const rewriter = new LinkRewriter({ rewritings: [{ from, to }], requested })
    const open = Buffer.from(`{"@odata.nextLink":"${from}/${'x'.repeat(100_000)}`)
    expect(rewriter.write(open).length).toBe(open.length + to.length - from.length)
  })

  it('applies the first rewriting rule that matches, even if a chunk ends within the link', () => {
    const links = [
      { from: `${from}/V3/Sets`, to: 'http://adapter.test/own' },
      { from: `${from}/V3`, to: 'http://adapter.test/root' },
      { from, to: from },
    ]
    const text = `{"@odata.nextLink":"${from}/V3/Sets?x","@odata.context":"${from}/V3/SetsOther","@odata.id":"${from}/V4"}`
    const expected = '{"@odata.nextLink":"http://adapter.test/own?x","@odata.context":"http://adapter.test/root/SetsOther","@odata.id":"https://v3.test/sims/V4"}' // prettier-ignore
    for (let cut = 0; cut <= text.length; cut += 1) {
      const rewriter = new LinkRewriter({ rewritings: links, requested })
      const parts = [text.slice(0, cut), text.slice(cut)].map((part) =>
        Buffer.from(rewriter.write(Buffer.from(part))),
      )
      expect(Buffer.concat([...parts, rewriter.write(Buffer.alloc(0), true)]).toString()).toBe(expected)
    }
  })
})
