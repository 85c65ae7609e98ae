import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'

import { systemClock } from '../../../src/clock.ts'
import { parsePage } from '../../../src/v3/client/read.ts'
import { createV3Reader, type ReadOutcome, type V3Reader } from '../../../src/v3/index.ts'
import { type Answer, replyWith, startUpstream } from '../../support/scripted-upstream.ts'

const credentials = { authorization: 'bearer t', subscriptionKey: 'k' }

function reader(url: string, timeouts: { headersMs?: number; bodyMs?: number } = {}): V3Reader {
  const made = createV3Reader({
    baseUrl: new URL(url),
    connections: 4,
    timeouts: { connectMs: 1_000, headersMs: 5_000, bodyMs: 5_000, ...timeouts },
    nowMs: () => Date.parse('2026-06-10T10:00:00Z'),
    clock: systemClock,
  })
  onTestFinished(() => made.close())
  return made
}

const get = (v3: V3Reader, signal: AbortSignal = new AbortController().signal): Promise<ReadOutcome> =>
  v3.get('AttendanceRecords', '$top=1', credentials, signal, 20_000)

const unavailable = (
  reason: 'notConnected' | 'throttled' | 'unavailable',
  retryAfterMs?: number,
): ReadOutcome => ({ kind: 'unavailable', reason, retryAfterMs })
const broken = (status: number): ReadOutcome => ({ kind: 'broken', status })
const tooMany = { statusCode: 429, message: 'Rate limit is exceeded. Try again in 7 seconds.' }

describe('createV3Reader', () => {
  it('requests the path below the base address with the query, the subscription key and the headers', async () => {
    const upstream = await startUpstream(replyWith(200, { value: [] }))
    const v3 = reader(`${upstream.url}/base/`)
    const { signal } = new AbortController()
    await v3.get('AttendanceRecords', '', credentials, signal, 20_000)
    await v3.get('AttendanceRecords(id)', '$select=Comment', credentials, signal, 20_000)
    expect(
      upstream.seen.map(({ method, url, headers }) => [
        method,
        url,
        headers.accept,
        headers.authorization,
        headers['ocp-apim-subscription-key'],
      ]),
    ).toEqual([
      ['GET', '/base/Attendance/V3/AttendanceRecords', 'application/json', 'bearer t', 'k'],
      [
        'GET',
        '/base/Attendance/V3/AttendanceRecords(id)?$select=Comment',
        'application/json',
        'bearer t',
        'k',
      ],
    ])
  })

  const torn: Answer = (_seen, response) =>
    void response.socket?.end('HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"value"')
  const rows: [name: string, answer: Answer, outcome: ReadOutcome][] = [
    ['a 200', replyWith(200, { value: [1] }), { kind: 'read', json: { value: [1] } }],
    ['a 200 that is not JSON', replyWith(200, '<html>'), broken(200)],
    ['a 200 that is cut off', torn, broken(200)],
    ['a 302', replyWith(302, '', { Location: '/elsewhere' }), broken(302)],
    ['a 500', replyWith(500, 'oops'), broken(500)],
    ['a 404', replyWith(404, { error: { code: 'X', message: 'none' } }), { kind: 'refused', error: { status: 404, form: 'odata', entries: [{ code: 'X', message: 'none', target: undefined }] } }],
    ['a 429 of the gateway', replyWith(429, tooMany), unavailable('throttled', 7_000)],
    ['a 429 with Retry-After', replyWith(429, '', { 'Retry-After': '2' }), unavailable('throttled', 2_000)],
    ['a 429 without a time', replyWith(429), unavailable('throttled')],
    ['a 503 with a date', replyWith(503, '', { 'Retry-After': 'Wed, 10 Jun 2026 10:00:03 GMT' }), unavailable('unavailable', 3_000)],
    ['a 503', replyWith(503), unavailable('unavailable')],
    ['a 408', replyWith(408), unavailable('unavailable')],
    ['a connection that breaks', (_seen, response) => void response.socket?.resetAndDestroy(), unavailable('notConnected')],
    ['a service that never answers', () => undefined, unavailable('notConnected')],
    ['a body that stalls', (_seen, response) => void response.write('{"value"'), broken(200)],
  ] // prettier-ignore
  it.each(rows)('reports the outcome of %s', async (_name, answer, outcome) => {
    const upstream = await startUpstream(answer)
    expect(await get(reader(upstream.url, { headersMs: 150, bodyMs: 150 }))).toEqual(outcome)
  })

  it('reports the service as not connected if no server listens', async () => {
    expect(await get(reader('http://127.0.0.1:1'))).toEqual(unavailable('notConnected'))
  })

  it.each([
    ['members', `{"value":[{${Array.from({ length: 140_000 }, (_, n) => `"${n}":1`).join()}}]}`],
    ['brackets', `{"value":[${'['.repeat(140_000)}${']'.repeat(140_000)}]}`],
  ])('rejects a page that has more %s than a real page has', async (_what, page) => {
    const upstream = await startUpstream(replyWith(200, page))
    expect(await get(reader(upstream.url))).toEqual(broken(200))
  })

  it('accepts a page with many commas in strings and a byte order mark', async () => {
    const page = { value: [{ Comment: ',[{'.repeat(100_000) }] }
    const upstream = await startUpstream(replyWith(200, `\ufeff${JSON.stringify(page)}`))
    expect(await get(reader(upstream.url))).toEqual({ kind: 'read', json: page })
  })

  it('rejects a page far beyond the size limit', async () => {
    const block = '9'.repeat(1_048_576)
    const upstream = await startUpstream((_seen, response) => {
      response.writeHead(200)
      for (let count = 0; count < 40; count += 1) response.write(block)
      response.end()
    })
    expect(await get(reader(upstream.url))).toEqual(broken(200))
  })

  it("rejects with an AbortError when the client's request is aborted", async () => {
    const upstream = await startUpstream(() => undefined)
    const gone = new AbortController()
    const asked = get(reader(upstream.url), gone.signal)
    await upstream.arrived(1)
    gone.abort()
    await expect(asked).rejects.toMatchObject({ name: 'AbortError' })
  })

  it('returns its own page to each concurrent read, even if other reads are aborted halfway', async () => {
    const rowsOf = (index: number): string[] =>
      Array<string>(2_000 + 500 * (index % 8)).fill(`${index} ${'x'.repeat(250)}`)
    const ended = new Map([3, 6, 9].map((index) => [index, new AbortController()]))
    const upstream = await startUpstream(async ({ index }, response) => {
      const text = JSON.stringify({ value: rowsOf(index), of: index })
      for (let at = 0; at < text.length; at += 65_536) {
        if (at > text.length / 2) ended.get(index)?.abort()
        response.write(text.slice(at, at + 65_536))
        await new Promise(setImmediate)
      }
      response.end()
    })
    const v3 = reader(upstream.url)
    const outcomes: unknown[] = []
    // Each read starts after the previous request has arrived, so that its index is known. At most four reads are in flight at a time.
    for (let index = 0; index < 24; index += 1) {
      outcomes.push(get(v3, ended.get(index)?.signal).catch(() => 'ended'))
      await upstream.arrived(index + 1)
    }
    expect(await Promise.all(outcomes)).toEqual(
      Array.from({ length: 24 }, (_, index) =>
        ended.has(index) ? 'ended' : { kind: 'read', json: { value: rowsOf(index), of: index } },
      ),
    )
  })
})

describe('parsePage', () => {
  it('parses a large page in several turns of the event loop, with more turns for more rows', async () => {
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

  it('returns the same value as JSON.parse for a page that is parsed in pieces', async () => {
    // Texts that a parser may cut in the wrong place: in a string, in a list within a row, or after a member of the same name.
    const text = fc.constantFrom('},{', '},{"', '}]', '"value":[', '"value"', '\\', '[', 'é', '')
    const row = fc.oneof(
      fc.record({ text, list: fc.array(fc.record({ text, n: fc.nat() }), { minLength: 2, maxLength: 3 }) }),
      fc.record({ value: fc.array(fc.record({ text })) }),
      text,
    )
    // Adds filler rows of about 130 KB with few values, so that the parser cuts the page. The length of the first row shifts the cuts.
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

  it.each(['"v\\u0061lue":[]', '"value":[]'])(
    'lets a later member %s replace the rows before it',
    async (later) => {
      const rows = Array.from({ length: 400 }, (_, index) => ({ filling: 'x'.repeat(200), index }))
      const json = `{"value":${JSON.stringify(rows)},${later}}`
      expect(await parsePage(Buffer.from(json))).toEqual({ value: [] })
    },
  )

  const names = (count: number): string => Array.from({ length: count }, (_, n) => `"${n}":1`).join()
  it.each([
    ['rows', `{"value":[${'{},'.repeat(40_000)}{}]}`],
    ['members of a row', `{"value":[{${names(40_000)}}]}`],
    ['brackets in a row', `{"value":[${'['.repeat(40_000)}${']'.repeat(40_000)}]}`],
    ['members before the rows', `{${names(40_000)},"value":[{"a":1}]}`],
    ['members after the rows', `{"value":[{"a":1}],${names(40_000)}}`],
    ['values in all rows', `{"value":[${`{"a":[${'1,'.repeat(300)}1]},`.repeat(500)}{"a":1}]}`],
    ['values in rows that cannot be cut apart', `{"value": [${'{"a": 1}, '.repeat(20_000)}{"a": 1}]}`],
    [
      'values in rows that are cut in the wrong place',
      `{"value":[{"a":[${'{"b":1},'.repeat(40_000)}{"b":1}]}]}`,
    ],
  ])('rejects more %s than a real page has', async (_what, text) => {
    expect(JSON.parse(text)).toBeDefined()
    expect(await parsePage(Buffer.from(text), (act) => act())).toBeUndefined()
  })

  it.each([
    ['an empty text', ''],
    ['a page that ends within its rows', '{"value":[1'],
    ['a page that ends after its rows', `{"value":[{"a":1}]${' '.repeat(70_000)}`],
    ['a row with an additional bracket', `{"value":[{"a":1}${' '.repeat(70_000)}}]}`],
  ])('returns undefined for %s', async (_what, text) => {
    expect(await parsePage(Buffer.from(text))).toBeUndefined()
  })
})
