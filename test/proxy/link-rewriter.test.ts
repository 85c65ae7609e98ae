import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { createLinkRewriter } from '../../src/proxy/link-rewriter.ts'

const from = 'https://v3.test/sims'
const to = 'http://adapter.test'

async function rewrite(chunks: readonly (string | Buffer)[]): Promise<string> {
  const bytes = chunks.map((chunk) => Buffer.from(chunk)).filter((chunk) => chunk.length > 0)
  return (
    await buffer(Readable.from(bytes, { objectMode: false }).pipe(createLinkRewriter(from, to)))
  ).toString('utf8')
}

describe('createLinkRewriter', () => {
  const rows: [text: string, expected: string][] = [
    [`{"@odata.nextLink":"${from}/a?$skip=1"}`, `{"@odata.nextLink":"${to}/a?$skip=1"}`],
    [`{"@odata.context" : "${from}"}`, `{"@odata.context" : "${to}"}`],
    [`{"@odata.context":"${from}#x","a@odata.deltaLink":\n"${from}?y"}`, `{"@odata.context":"${to}#x","a@odata.deltaLink":\n"${to}?y"}`],
    [`[{"Contacts@odata.nextLink":"${from}/b"},{"Contacts@odata.nextLink":"${from}/c"}]`, `[{"Contacts@odata.nextLink":"${to}/b"},{"Contacts@odata.nextLink":"${to}/c"}]`],
    [`{"@odata.id":"${from}/A(1)","@odata.editLink":"A(1)","B@odata.navigationLink":"${from}/A(1)/B"}`, `{"@odata.id":"${to}/A(1)","@odata.editLink":"A(1)","B@odata.navigationLink":"${to}/A(1)/B"}`],
  ] // prettier-ignore
  it.each(rows)('turns %s', async (text, expected) => {
    expect(await rewrite([text])).toBe(expected)
  })

  it.each([
    `{"@odata.context":"https://other.test/sims/$metadata"}`,
    `{"@odata.context":"${from}-two/$metadata"}`,
    `{"@odata.type":"${from}/x"}`,
    `{"odata.nextLink":"${from}/x"}`,
    `{"Comment":"see ${from}/x"}`,
    `{"Comment":"\\"@odata.nextLink\\":\\"${from}/x\\""}`,
    `{"a":"@odata.nextLink","b":"${from}/x"}`,
    `{"@odata.nextLink":null,"b":"${from}/x"}`,
    `{"@odata.nextLink":"${from}`,
    `{"@odata.nextLink":"${from.slice(0, -1)}`,
    '{"@odata.nextLink',
    '',
    '"',
    '\u00e9\u{1f600}',
  ])('leaves %s', async (text) => {
    expect(await rewrite([text])).toBe(text)
  })

  it('gives the same bytes wherever the chunks are cut', async () => {
    const text = rows.map(([body]) => `${body}"caf\u00e9 \u{1f600}\\"@odata."`).join(',')
    const expected = await rewrite([text])
    const bytes = Buffer.from(text)
    for (let cut = 0; cut <= bytes.length; cut += 1) {
      expect(await rewrite([bytes.subarray(0, cut), bytes.subarray(cut)])).toBe(expected)
    }
    expect(await rewrite(Array.from(bytes, (byte) => Buffer.of(byte)))).toBe(expected)
  })

  it('gives the same bytes for any text in any chunks', async () => {
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
    await fc.assert(
      fc.asyncProperty(texts, fc.array(fc.nat(120), { maxLength: 6 }), async (text, cuts) => {
        const bytes = Buffer.from(text)
        const ends = [...cuts, 0, bytes.length]
          .map((cut) => Math.min(cut, bytes.length))
          .sort((one, other) => one - other)
        const chunks = ends.slice(1).map((end, index) => bytes.subarray(ends[index], end))
        expect(await rewrite(chunks)).toBe(await rewrite([text]))
      }),
      { numRuns: 500 },
    )
  })

  it('rewrites a link as soon as its base is there, however long it is', async () => {
    const rewriter = createLinkRewriter(from, to)
    let out = 0
    rewriter.on('data', (chunk: Buffer) => (out += chunk.length))
    const open = Buffer.from(`{"@odata.nextLink":"${from}/${'x'.repeat(100_000)}`)
    await new Promise((resolve) => rewriter.write(open, resolve))
    expect(out).toBe(open.length + to.length - from.length)
  })
})
