import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { parseInGroups, parsePage } from '../../../src/v3/client/parse-page.ts'

const parse = (text: string): Promise<unknown> => parseInGroups(Buffer.from(text))

function parseAsJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

describe('parseInGroups', () => {
  it('gives what JSON.parse gives', async () => {
    const row = fc.oneof(fc.jsonValue(), fc.record({ value: fc.jsonValue() }))
    const page = fc.oneof(
      fc.record({ '@odata.nextLink': fc.string(), value: fc.array(row), more: fc.jsonValue() }),
      fc.jsonValue(),
    )
    const space = fc.constantFrom(0, 1, 2, '\t')
    await fc.assert(
      fc.asyncProperty(page, space, async (json, indent) => {
        const text = JSON.stringify(json, undefined, indent)
        expect(await parse(text)).toEqual(JSON.parse(text))
      }),
      { numRuns: 300 },
    )
  })

  it.each([
    '{"value":[1,]}', '{"value":[,1]}', '{"value":[,]}', '{"value":[1 2]}', '{"value":[{]}]}', '{"value":[1}', '{"value":[1',
    '{"value":[1]', '{"value":[1]]}', '{"value":[}]}', '{"value" [1]}', '{"value":["\\x"]}', '{"value":["a]}', '{"value":[]}}',
    '{"value":[ ]}', '{"\\"value":[1]}', '{"a":{"value":[1]}}', '[{"value":[1]}]', '{"value":[1],"value":2}', '\ufeff',
    '{"value":["\\\\"],"a":"\\\\"}', '{"value":["]"]}', '"value"', '{"v\\u0061lue":[1]}', '',
  ])('reads %s as JSON.parse does', async (text) => {
    expect(await parse(text)).toEqual(parseAsJson(text))
  }) // prettier-ignore

  it('passes a byte order mark over, and refuses two lists of rows', async () => {
    expect(await parse(`\ufeff{"value":["é"]}`)).toEqual({ value: ['é'] })
    expect(await parse(`{"value":[1],"value":[2]}`)).toBeUndefined()
  })

  it.each([
    ['rows', `{"value":[${'{},'.repeat(30_000)}{}]}`],
    ['members of a row', `{"value":[{${Array.from({ length: 30_000 }, (_, n) => `"${n}":1`).join()}}]}`],
    ['brackets in a row', `{"value":[${'['.repeat(40_000)}${']'.repeat(40_000)}]}`],
    [
      'members beside the rows',
      `{"value":[],${Array.from({ length: 30_000 }, (_, n) => `"${n}":1`).join()}}`,
    ],
    [
      'members of all rows',
      `{"value":[${Array.from({ length: 1_000 }, () => `[${'1,'.repeat(300)}1]`).join()}]}`,
    ],
  ])('refuses more %s than any page has', async (_what, text) => {
    expect(JSON.parse(text)).toBeDefined()
    expect(await parse(text)).toBeUndefined()
  })
})

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
        const bytes = Buffer.from(json)
        const parsed = parsePage(bytes)
        bytes.fill(0)
        expect(await parsed).toEqual(JSON.parse(json))
      }),
      { numRuns: 60 },
    )
  })

  it.each(['"v\\u0061lue":[]', '"value":[]'])('takes %s after the rows in their place', async (later) => {
    const rows = Array.from({ length: 400 }, (_, index) => ({ filling: 'x'.repeat(200), index }))
    const json = `{"value":${JSON.stringify(rows)},${later}}`
    expect(await parsePage(Buffer.from(json))).toEqual({ value: [] })
  })

  it('refuses a page that holds too much', async () => {
    expect(await parsePage(Buffer.from(`{"value":[${'[],'.repeat(30_000)}[]]}`))).toBeUndefined()
  })
})
