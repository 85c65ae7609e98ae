import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { parsePage } from '../../../src/v3/client/parse-page.ts'

describe('parsePage', () => {
  it('parses a large page in turns of the event loop, more of them for more rows', async () => {
    const slotsOf = async (rows: number): Promise<number> => {
      const row = { Attendee: { ExternalID: 'x,[{'.repeat(4) }, Qualifier: { Comment: 'y'.repeat(60) } }
      const page = { '@odata.nextLink': 'z?a', value: Array.from({ length: rows }, () => row) }
      let turns = 0
      const later = (act: () => void): void => {
        turns += 1
        act()
      }
      expect(await parsePage(Buffer.from(JSON.stringify(page)), later)).toEqual(page)
      return turns
    }
    expect(await slotsOf(1_000)).toBe(0)
    expect(await slotsOf(10_000)).toBeGreaterThanOrEqual(4)
    expect(await slotsOf(20_000)).toBeGreaterThanOrEqual(8)
  })

  it('gives what JSON.parse gives where it cuts the rows into pieces', async () => {
    // Where a cut may be guessed wrong: in a string, in a list within a row, after a member of the same name.
    const text = fc.constantFrom('},{', '},{"', '}]', '"value":[', '"value"', '\\', '[', 'é', '')
    const row = fc.oneof(
      fc.record({ text, list: fc.array(fc.record({ text, n: fc.nat() }), { minLength: 2, maxLength: 3 }) }),
      fc.record({ value: fc.array(fc.record({ text })) }),
      text,
    )
    // Rows of filling, of which the first shifts the others: some 130 KB with few values, so that there are cuts.
    const rows = fc.tuple(fc.array(row, { minLength: 1, maxLength: 4 }), fc.nat(200)).map(([own, shift]) => {
      const fill = (length: number): object => ({ filling: 'x'.repeat(length) })
      const part = (): unknown[] => [fill(200), ...own]
      return [fill(shift), ...Array.from({ length: Math.ceil(600 / own.length) }, part).flat()]
    })
    const members = fc.tuple(
      fc.subarray(['"@odata.context":"c"', '"a":{"value":[{}]}', '"value":1', '"value":[{"b":1}]']),
      rows,
      fc.subarray(['"n":"?a}]"', '"list":[{}]', '"value":2', '"v\\u0061lue":[]', '"c":"\\""']),
    )
    await fc.assert(
      fc.asyncProperty(members, async ([before, value, after]) => {
        const json = `{${[...before, `"value":${JSON.stringify(value)}`, ...after].join()}}`
        expect(await parsePage(Buffer.from(json))).toEqual(JSON.parse(json))
      }),
      { numRuns: 60 },
    )
  })

  it.each(['"v\\u0061lue":[]', '"value":[]'])('takes %s after the rows in their place', async (later) => {
    const rows = Array.from({ length: 400 }, (_, index) => ({ filling: 'x'.repeat(200), index }))
    const json = `{"value":${JSON.stringify(rows)},${later}}`
    expect(await parsePage(Buffer.from(json))).toEqual({ value: [] })
  })

  const names = (count: number): string => Array.from({ length: count }, (_, n) => `"${n}":1`).join()
  it.each([
    ['rows', `{"value":[${'{},'.repeat(40_000)}{}]}`],
    ['members of a row', `{"value":[{${names(40_000)}}]}`],
    ['brackets in a row', `{"value":[${'['.repeat(40_000)}${']'.repeat(40_000)}]}`],
    ['members before the rows', `{${names(40_000)},"value":[{"a":1}]}`],
    ['members after the rows', `{"value":[{"a":1}],${names(40_000)}}`],
    ['members of all rows', `{"value":[${`{"a":[${'1,'.repeat(300)}1]},`.repeat(500)}{"a":1}]}`],
    ['rows that cannot be cut apart', `{"value": [${'{"a": 1}, '.repeat(20_000)}{"a": 1}]}`],
    ['rows that are cut within', `{"value":[{"a":[${'{"b":1},'.repeat(40_000)}{"b":1}]}]}`],
  ])('refuses more %s than any page has', async (_what, text) => {
    expect(JSON.parse(text)).toBeDefined()
    expect(await parsePage(Buffer.from(text), (act) => act())).toBeUndefined()
  })

  it.each([
    '',
    '{"value":[1',
    `{"value":[{"a":1}]${' '.repeat(70_000)}`,
    `{"value":[{"a":1}${' '.repeat(70_000)}}]}`,
  ])('gives nothing for a text that is not JSON', async (text) => {
    expect(await parsePage(Buffer.from(text))).toBeUndefined()
  })
})
