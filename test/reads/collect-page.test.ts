import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { collectPage, type PageRequest, readGivenRows, writeGivenRows } from '../../src/reads/collect-page.ts'
import type { ReadPlan, ReadRow } from '../../src/translate/index.ts'
import type { FlatReply } from '../../src/v2/index.ts'
import { flatMark } from '../support/flat-mark.ts'

const mark = (id: string): FlatReply => flatMark({ ExternalID: id })

/** Creates a V3 whose pages are strings with one character per row. `-` is an unmarked row, and `?` is an unreadable row. */
function pagesOf(windows: readonly string[][], narrowed = false) {
  const fetched: string[] = []
  const plan: ReadPlan = {
    queries: windows.map((_, window) => `${window}.0`),
    select: undefined,
    skip: 0,
    top: undefined,
    count: false,
    format: undefined,
    narrowed,
  }
  const source = {
    plan,
    fetch: (query: string) => {
      fetched.push(query)
      const [window = 0, page = 0] = query.split('.').map(Number)
      const more = page + 1 < (windows[window]?.length ?? 0)
      const link = more ? { '@odata.nextLink': `http://elsewhere.test/x?${window}.${page + 1}` } : {}
      return Promise.resolve({ value: Array.from(windows[window]?.[page] ?? ''), ...link })
    },
    readRow: (row: unknown): ReadRow =>
      row === '-' ? 'unmarked' : row === '?' ? 'unreadable' : mark(String(row)),
  }
  return { fetched, source }
}

const start = { window: 0, link: undefined, given: '' }
/** Encodes the rows that the client has already received. */
const given = (ids: string): string => writeGivenRows(Array.from(ids, mark), [])
const all: PageRequest = { from: start, skip: 0, size: 1000, last: false, count: false }

describe('collectPage', () => {
  const windows = [['a-b', '-', 'c'], ['-'], ['de-']]
  it.each([
    ['all marks', all, 'abcde', undefined, 5],
    ['the marks after the skipped marks', { ...all, skip: 2 }, 'cde', undefined, 5],
    ['a full page and the position of the next mark', { ...all, size: 2 }, 'ab', { window: 0, link: '0.2', given: '' }, 3],
    ['a full page that ends within a page of V3', { ...all, size: 1 }, 'a', { window: 0, link: undefined, given: given('a') }, 2],
    ['a full page at the end of a window', { ...all, size: 3 }, 'abc', { window: 2, link: undefined, given: '' }, 5],
    ['a full page with nothing after it', { ...all, size: 5 }, 'abcde', undefined, 5],
    ['the last page without reading further', { ...all, size: 2, last: true }, 'ab', undefined, 2],
    ['no marks for a page of size 0', { ...all, size: 0, last: true }, '', undefined, 2],
    ['a page and the count of all marks', { ...all, size: 2, count: true }, 'ab', { window: 0, link: '0.2', given: '' }, 5],
    ['the rest from a position', { ...all, from: { window: 0, link: '0.2', given: '' } }, 'cde', undefined, 3],
    ['the rest after a row', { ...all, from: { window: 2, link: undefined, given: given('d') } }, 'e', undefined, 1],
    ['the rest after the last row', { ...all, from: { window: 2, link: undefined, given: given('e') } }, 'd', undefined, 1],
  ] as const)('returns %s', async (_name, wish, ids, next, count) => {
    const page = await collectPage(pagesOf(windows).source, wish)
    expect([page.rows.map((row) => row.ExternalID).join(''), page.next, page.count]).toEqual([
      ids,
      next,
      count,
    ])
  }) // prettier-ignore

  it('returns a next link without reading the page behind it if V3 itself leaves out unmarked rows', async () => {
    const { fetched, source } = pagesOf([['ab', 'cd', 'e']], true)
    const page = await collectPage(source, { ...all, size: 2, from: { ...start, link: '0.1' } })
    expect([page.next, fetched]).toEqual([{ window: 0, link: '0.2', given: '' }, ['0.1']])
  })

  it.each([
    ['an empty page', ['ab', ''], undefined],
    ['a page with a mark', ['ab', 'c'], { window: 0, link: '0.1', given: '' }],
  ])(
    'reads the second page of V3 after a full first page if the link leads to %s',
    async (_what, pages, next) => {
      const { fetched, source } = pagesOf([pages], true)
      const page = await collectPage(source, { ...all, size: 2 })
      expect([page.rows.length, page.next, fetched]).toEqual([2, next, ['0.0', '0.1']])
    },
  )

  it.each([
    ['an unreadable row', { value: ['?'] }],
    ['a page without rows', {}],
    ['a page that is not an object', 5],
    ['a link that is not a text', { value: [], '@odata.nextLink': 5 }],
    ['a link without a query', { value: [], '@odata.nextLink': 'http://x.test/y' }],
    ['a link to itself', { value: [], '@odata.nextLink': 'http://x.test/y?z' }],
  ])('rejects an answer of V3 with %s', async (_name, answer) => {
    const { source } = pagesOf([['a']])
    const fetch = () => Promise.resolve(answer)
    await expect(collectPage({ ...source, fetch }, all)).rejects.toMatchObject({
      code: 'ADP_UPSTREAM_PROTOCOL',
    })
  })
})

const guidOf = (index: number): string => `00000000-0000-4000-8000-${index.toString(16).padStart(12, '0')}`

describe('the list of received rows in a next link', () => {
  it('contains the received rows, in any order, and no other rows', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.uuid(), { maxLength: 60 }), fc.nat(60), (ids, at) => {
        const [given, left] = [ids.slice(0, at).map(mark), ids.slice(at).map(mark)]
        const isGiven = readGivenRows(writeGivenRows(given, left))
        expect(given.toReversed().every(isGiven)).toBe(true)
        expect(left.some(isGiven)).toBe(false)
        expect(isGiven(mark(ids[at]?.toUpperCase() ?? ''))).toBe(false)
      }),
    )
  })

  it('mistakes no other row for a received row, even on a page where hashes of four bytes collide', () => {
    const rows = Array.from({ length: 16_000 }, (_, index) => mark(guidOf(index)))
    for (const at of [1, 4_000, 8_000, 15_999]) {
      const text = writeGivenRows(rows.slice(0, at), rows.slice(at))
      const isGiven = readGivenRows(text)
      expect(rows.filter(isGiven)).toEqual(rows.slice(0, at))
    }
  })

  it('takes about 5 KB for a page of 1000 rows', () => {
    const rows = Array.from({ length: 1_000 }, (_, index) => mark(guidOf(index)))
    expect(writeGivenRows(rows.slice(1), rows.slice(0, 1)).length).toBeLessThan(5_400)
    expect(writeGivenRows([], rows)).toBe('')
    expect(readGivenRows('')(mark(guidOf(1)))).toBe(false)
  })

  it('recognises a received row even if V3 shows the row again later in the page', () => {
    const isGiven = readGivenRows(writeGivenRows([mark('a')], [mark('a'), mark('b')]))
    expect([mark('A'), mark('b')].map(isGiven)).toEqual([true, false])
  })
})
