import { describe, expect, it } from 'vitest'

import { replyWith, startUpstream } from '../support/scripted-upstream.ts'
import { startAdapter } from '../support/start-adapter.ts'

const RECORDS = '/V2/Attendance/AttendanceRecords'
const guidOf = (group: number, index: number): string =>
  `0000000${group}-0000-4000-8000-${String(index).padStart(12, '0')}`
const rowOf = (index: number): object => ({
  ...{ ExternalID: guidOf(1, index), RecordedBy: { ExternalID: guidOf(3, 0) } },
  ...{ Attendee: { ExternalID: guidOf(4, 0) }, Event: { ExternalID: guidOf(2, index) } },
  AttendanceCode: { ExternalID: guidOf(5, 0) },
})

/** Starts a V3 service with nine rows in pages of three. `link` and `headers` build the link to the next page from its query. */
async function startPages(
  link: (query: string) => object,
  headers: (query: string) => Record<string, string>,
) {
  const upstream = await startUpstream((seen, response) => {
    const from = Number(/at=(\d)$/.exec(seen.url)?.[1] ?? 0)
    const value = [from, from + 1, from + 2].map(rowOf)
    const isLast = from >= 6
    const body = isLast ? { value } : { value, ...link(`at=${from + 3}`) }
    const fields = isLast ? {} : headers(`at=${from + 3}`)
    void replyWith(200, body, { 'Content-Type': 'application/json', ...fields })(seen, response)
  })
  const adapter = await startAdapter(upstream.url, {})
  return { upstream, read: () => adapter.request('GET', `${RECORDS}?$filter=true&$count=true`) }
}
const none = (): Record<string, string> => ({})

describe('a V2 read of several pages of V3', () => {
  it.each([
    ['@odata.nextLink', 'http://other.test/x?'],
    ['@nextLink', 'http://other.test/x?'],
    ['odata.nextLink', 'AttendanceRecords?'],
    ['__next', '?'],
    ['@odata.nextLink', ' http://other.test/x y?a=b c&'],
    ['@odata.nextLink', 'http://other.test/x?name=Zoë 😀&'],
    ['@odata.nextLink', 'http://other.test/Sch\u00fcler?'],
  ])('returns all rows of a V3 service whose next link is %s of the form %j', async (name, start) => {
    const { upstream, read } = await startPages((query) => ({ [name]: `${start}${query}` }), none)
    const reply = await read()
    expect(reply.status).toBe(200)
    const body = JSON.parse(reply.text) as { value: object[]; '@odata.count': number }
    const pages = upstream.seen.filter(({ url }) => url.includes('/AttendanceRecords?'))
    expect([body.value.length, body['@odata.count'], pages.length]).toEqual([9, 9, 3])
    expect(pages.every(({ url }) => /^[\x21-\x7e]+$/.test(url))).toBe(true)
    expect(pages.map(({ headers }) => headers['odata-maxversion'])).toEqual(['4.0', '4.0', '4.0'])
  })

  it.each<[what: string, link: (query: string) => object, headers: typeof none]>([
    ['another name', (query) => ({ nextLink: `http://x.test/y?${query}` }), none],
    ['another case', (query) => ({ '@odata.NextLink': `http://x.test/y?${query}` }), none],
    ['an annotation of its rows', (query) => ({ 'value@odata.nextLink': `http://x.test/y?${query}` }), none],
    ['a token', (query) => ({ ContinuationToken: query }), none],
    ['a flag that there are more pages', () => ({ hasMore: true }), none],
    ['an object', (query) => ({ links: 1, next: { href: `http://x.test/y?${query}` } }), none],
    ['two links that differ', (query) => ({ '@nextLink': `a?${query}`, '@odata.nextLink': 'b?z' }), none],
    ['a Link header', () => ({}), () => ({ Link: '<http://x.test/y?at=3>; rel="prev next"' })],
  ])('gets 502, and never only some of the rows, when a next link has an unknown form: %s', async (_what, link, headers) => {
    const { read } = await startPages(link, headers)
    const reply = await read()
    expect([reply.status, reply.text]).toEqual([502, expect.stringContaining('ADP_UPSTREAM_PROTOCOL')])
  })

  it('ends when the value of the next link means that no page follows', async () => {
    const over = { '@odata.nextLink': null, hasMore: false, next: '' }
    const upstream = await startUpstream(replyWith(200, { value: [rowOf(0)], ...over }))
    const adapter = await startAdapter(upstream.url, {})
    expect((await adapter.request('GET', `${RECORDS}?$filter=true`)).status).toBe(200)
  })
}) // prettier-ignore
