import { describe, expect, it, onTestFinished } from 'vitest'

import {
  anyText,
  fixed,
  jsonOf,
  nestedMark,
  recordsOf,
  sandboxHeaders,
  startSandbox,
} from '../sandbox/start-sandbox.ts'
import { atEndOfFile, type OnEnd } from '../support/end-of-file.ts'
import { exchange } from '../support/raw-client.ts'
import { replyWith } from '../support/scripted-upstream.ts'
import { journalFile } from './support/journal-file.ts'
import { type AdapterSettings, onePartner, startAdapter, startWithV3 } from '../support/start-adapter.ts'

const RECORDS = '/sp-api/V2/Attendance/AttendanceRecords'
const week = 'AttendableEventStart ge 2026-03-02T00:00:00Z and AttendableEventStart lt 2026-03-07T00:00:00Z'

interface Body {
  readonly value: Record<string, unknown>[]
  readonly '@odata.nextLink'?: string
  readonly '@odata.count'?: number
}

async function startReads(settings: AdapterSettings = {}, onEnd: OnEnd = onTestFinished) {
  const sandbox = await startSandbox({}, onEnd)
  const adapter = await startAdapter(sandbox.url, settings, {}, onEnd)
  const get = async (path: string, headers: Record<string, string> = {}) => {
    const all = { ...sandboxHeaders, ...headers }
    const reply = await adapter.request('GET', path.replaceAll(' ', '%20'), { headers: all })
    return { status: reply.status, headers: reply.headers, text: reply.text }
  }
  const read = async (query: string, headers: Record<string, string> = {}): Promise<Body> => {
    const { status, text } = await get(`${RECORDS}?${query}`, headers)
    expect([status, text.slice(0, status === 200 ? 0 : 500)]).toEqual([200, ''])
    return JSON.parse(text) as Body
  }
  return { sandbox, adapter, get, read }
}

const onEnd = atEndOfFile()
let shared: ReturnType<typeof startReads> | undefined
/** Returns the shared adapter and sandbox, for tests that change neither data nor settings. */
const useReads = (): ReturnType<typeof startReads> => (shared ??= startReads({}, onEnd))

const local = (link: string | undefined): string => {
  const url = new URL(link ?? '')
  return url.pathname + url.search
}

describe('a V2 read', () => {
  it('returns flat records with their fields in the order of V2', async () => {
    const { read, adapter } = await useReads()
    const body = await read(`$filter=Learner eq ${fixed.learner} and AttendableEvent eq ${fixed.morning}`)
    expect(body).toEqual({
      '@odata.context': `${adapter.url}/sp-api/V2/Attendance/$metadata#AttendanceRecords`,
      value: [
        {
          ExternalID: anyText,
          Present: true,
          Absent: false,
          RecordedOn: anyText,
          ChangeProcessName: null,
          AttendableEventStart: '2026-03-02T09:00:00Z',
          RecordedBy: anyText,
          Learner: fixed.learner,
          AttendableEvent: fixed.morning,
          SchoolAttendanceCode: fixed.present,
          MinutesLate: null,
          Comment: null,
          AttendanceHistorys: [],
        },
      ],
    })
    expect(Object.keys(body.value[0] ?? {})).toEqual([
      'ExternalID', 'Present', 'Absent', 'RecordedOn', 'ChangeProcessName', 'AttendableEventStart', 'RecordedBy',
      'Learner', 'AttendableEvent', 'SchoolAttendanceCode', 'MinutesLate', 'Comment', 'AttendanceHistorys',
    ]) // prettier-ignore
  })

  it.each([
    ['minimal', '{"@odata.context":'],
    ['none', '{"value":[{"ExternalID":'],
    ['full', '"value":[{"@odata.type":"#AttendanceService.Models.OData.AttendanceRecord","ExternalID":'],
  ])('returns the OData annotations of the metadata level in Accept: %s', async (level, part) => {
    const { get } = await useReads()
    const reply = await get(`${RECORDS}?$filter=Learner eq ${fixed.learner}&$top=1`, {
      Accept: `application/json;odata.metadata=${level}`,
    })
    expect(reply.headers['content-type']).toBe(`application/json; odata.metadata=${level}`)
    expect(reply.text).toContain(part)
  })

  it('returns next links that work on another instance, and rejects an altered link', async () => {
    const journal = journalFile()
    const { sandbox, read, get } = await startReads({ journal })
    const query = `$filter=${week}&$top=25&$orderby=Learner`
    const first = await read(query, { Prefer: 'odata.maxpagesize=10' })
    const link = local(first['@odata.nextLink'])
    const other = await startAdapter(sandbox.url, { journal })
    const pages = [first]
    for (let path: string | undefined = link; path !== undefined;) {
      const reply = await other.request('GET', path, {
        headers: { ...sandboxHeaders, Prefer: 'maxpagesize=10' },
      })
      const body = JSON.parse(reply.text) as Body
      pages.push(body)
      path = body['@odata.nextLink'] === undefined ? undefined : local(body['@odata.nextLink'])
    }
    expect(pages.map(({ value }) => value.length)).toEqual([10, 10, 5])
    expect(pages.flatMap(({ value }) => value)).toEqual((await read(query)).value)

    const at = link.indexOf('skiptoken=') + 'skiptoken='.length
    const turned = link[at + 30] === 'A' ? 'B' : 'A'
    const altered = [
      link.slice(0, -1),
      link.slice(0, at + 30) + turned + link.slice(at + 31),
      link.slice(0, at),
      `${link}&$top=9`,
    ]
    for (const path of altered) expect([path, (await get(path)).status]).toEqual([path, 400])
    const stranger = await other.request('GET', link, {
      headers: { ...sandboxHeaders, 'Ocp-Apim-Subscription-Key': 'other' },
    })
    expect(stranger.status).toBe(400)
  })

  it('reads a range of more than 90 days in several windows, and returns the rows in order of time if the query asks for it', async () => {
    const { read, get } = await useReads()
    const year = `Learner eq ${fixed.learner} and AttendableEventStart ge 2026-01-01T00:00:00Z and AttendableEventStart le 2026-06-10T00:00:00Z`
    const { value } = await read(`$filter=${year}&$orderby=AttendableEventStart desc&$count=true`)
    const starts = value.map((row) => String(row['AttendableEventStart']))
    expect(starts).toEqual([...new Set(starts)].sort().reverse())
    const months = new Set(starts.map((start) => start.slice(0, 7)))
    // Each month of the range has marks, so no window is missing.
    expect([...months].sort()).toEqual(['2026-01', '2026-02', '2026-03', '2026-04', '2026-05', '2026-06'])
    const natural = await read(`$filter=${year}`)
    expect(natural.value).toEqual(value.toReversed())
    const refused = await get(`${RECORDS}?$filter=${year}&$orderby=Comment`)
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('$orderby, character 0')])
  })

  it.each([
    ['$filter=AttendanceHistorys/any(h:h/Present eq true)', 'AttendanceHistorys'],
    ['$filter=Present eq true and AttendanceHistorys/$count gt 0', 'character 20'],
    ['$filter=true&$expand=AttendanceHistorys', '$expand'],
  ])('rejects %s, and names it in the error', async (query, text) => {
    const { get } = await useReads()
    const reply = await get(`${RECORDS}?${query}`)
    expect([reply.status, reply.text]).toEqual([400, expect.stringContaining(text)])
  })
})

describe('a query that the adapter rejects', () => {
  it.each([
    ['', '$filter'],
    ['$top=1', '$filter'],
    ['$filter=Pupil eq 1', '$filter', 'character 0'],
    ['$filter=Present eq true and Learner eq 5', '$filter', 'character 31'],
    ['$count=true&$filter=Comment eq %27%C3%A9%C3%A9%27 eq', '$filter', 'character 16'],
    ['$filter=%ff', '$filter', 'character 0'],
    ['$top=2&$filter=Present%zz', '$filter', 'character 7'],
    ['$filter=true&filter=true', '$filter', 'character 0'],
    ['$filter=true&$top=x', '$top', 'character 0'],
    ['$filter=@p&@p=(1', '@p', 'character 2'],
    ['$filter=@p and Present&@p=Mood', '$filter', 'character 0'],
    ['$filter=true&$orderby=Present,Mood', '$orderby', 'character 8'],
    ['$filter=true&$select=Learner,Mood', '$select', 'character 8'],
    ['$filter=true&$search=x', '$search', 'character 0'],
    ['$filter=true&$format=xml', '$format', 'character 0'],
    ['$filter=true&$fliter=true', '$fliter', 'character 0'],
    ['$filter=true&$top', 'query', 'character 17'],
  ])(
    'gets the same error from the adapter as from V2, except for the error codes: %s',
    async (query, target, place = '') => {
      const { sandbox, get } = await useReads()
      const path = `${RECORDS}?${query}`
      const [own, legacy] = [await get(path), await sandbox.request('GET', path)].map(({ status, text }) => ({
        status,
        body: JSON.parse(text) as { error: { code: string; message: string; details: object[] } },
      }))
      const plain = (message = ''): string => message.replace(/ \(\$filter, character 0\)|\.$/g, '')
      const message = own?.body.error.message ?? ''
      expect(message).toContain(place)
      expect([own?.status, own?.body]).toEqual([
        400,
        { error: { code: 'ADP_QUERY', message, details: [{ code: 'ADP_QUERY', message, target }] } },
      ])
      const { code = '', message: theirs } = legacy?.body.error ?? {}
      expect([legacy?.status, legacy?.body]).toEqual([
        400,
        { error: { code, message: theirs, details: [{ code, message: theirs, target }] } },
      ])
      expect(plain(theirs)).toBe(plain(message))
    },
  )

  it.each(['$filter=true#x', '$filter=true&$search=a#b'])(
    'gets 400 both from the adapter and from V2 when the query contains "#": %s',
    async (query) => {
      const { sandbox, adapter } = await useReads()
      const head = Object.entries({ Host: 'x.test', ...sandboxHeaders, Connection: 'close' })
      const request = `GET ${RECORDS}?${query} HTTP/1.1\r\n${head.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`
      for (const port of [adapter.port, sandbox.port]) {
        const reply = await exchange(port, request)
        expect([reply.slice(0, 12), reply.includes('{"error":{"code":')]).toEqual(['HTTP/1.1 400', true])
      }
    },
  )
})

describe('the collection AttendanceHistorys of V2', () => {
  const own = `$filter=Learner eq ${fixed.learner} and AttendableEvent eq ${fixed.morning}`
  const change = (sandbox: Awaited<ReturnType<typeof startReads>>['sandbox'], minutes: number) =>
    sandbox.json('POST', recordsOf.V3, jsonOf(nestedMark({ Qualifier: { MinutesLate: minutes } })))
  const minutesOf = ({ AttendanceHistorys: states }: Record<string, unknown>): unknown =>
    Array.isArray(states) ? states.map((state: { MinutesLate: unknown }) => state.MinutesLate) : states

  it("contains the states in V3's history, on pages and in single records, if reads.histories is set", async () => {
    const { sandbox, read, get, adapter } = await startReads(onePartner({ reads: { histories: true } }))
    await change(sandbox, 5)
    await change(sandbox, 7)
    // The sandbox keeps the old and the new state of each write.
    const states = [null, 5, 5, 7]
    const [row = {}] = (await read(own)).value
    expect(minutesOf(row)).toEqual(states)
    const legacy = (await sandbox.json('GET', `/V2/Attendance/AttendanceRecords?${own}`)).body as Body
    expect(legacy.value).toEqual([row])
    expect(Object.keys((row['AttendanceHistorys'] as object[])[0] ?? {})).toEqual(
      Object.keys(row).slice(0, -1),
    )
    const single = await get(`${RECORDS}(${String(row['ExternalID'])})`)
    expect(minutesOf(JSON.parse(single.text) as Record<string, unknown>)).toEqual(states)
    const page = await read(`$filter=${week}&$top=100`)
    expect(
      page.value.filter((one) => (one['AttendanceHistorys'] as unknown[]).length > 0).length,
    ).toBeLessThan(2)
    expect(adapter.events().at(-1)).toMatchObject({ rows: 100, pages: 4 })
    await read(`${own}&$select=MinutesLate`)
    expect(adapter.events().at(-1)).toMatchObject({ rows: 1, pages: 1 })
  })

  it('is empty by default, without a call to V3', async () => {
    const { sandbox, read, adapter } = await startReads()
    await change(sandbox, 5)
    expect((await read(own)).value.map(minutesOf)).toEqual([[]])
    expect(adapter.events().at(-1)).toMatchObject({ pages: 1 })
  })

  it.each([
    ['is missing', replyWith(404, { error: { code: 'NotFound', message: 'none' } }), 1],
    ['is not a collection', replyWith(200, {}), 1],
    ['contains a row that is not a state', replyWith(200, { value: [{}] }), 1],
    [
      'has more than 20 pages',
      replyWith(200, { value: [], '@odata.nextLink': 'http://elsewhere.test/x?page=2' }),
      20,
    ],
  ])('makes a read fail when the history of V3 %s', async (text, answer, asked) => {
    const row = { ExternalID: fixed.zero, RecordedBy: { ExternalID: fixed.zero }, Attendee: { ExternalID: fixed.zero }, Event: { ExternalID: fixed.zero }, AttendanceCode: { ExternalID: fixed.zero } } // prettier-ignore
    const isOfHistory = ({ url }: { readonly url: string }): boolean => url.includes('Historys')
    const { upstream, adapter } = await startWithV3(
      (seen, response) => (isOfHistory(seen) ? answer : replyWith(200, { value: [row] }))(seen, response),
      onePartner({ reads: { histories: true } }),
    )
    const reply = await adapter.request('GET', `${RECORDS}?${own.replaceAll(' ', '%20')}`)
    expect([reply.status, reply.text]).toEqual([502, expect.stringContaining(text)])
    expect(upstream.seen.filter(isOfHistory)).toHaveLength(asked)
  })
})

describe('a V2 read of one record', () => {
  it('returns a recorded mark, and 404 for an unknown id and for a session without a mark', async () => {
    const { sandbox, read, get } = await useReads()
    const [mark] = (await read(`$filter=Learner eq ${fixed.learner}&$top=1`)).value
    const id = String(mark?.['ExternalID'])
    for (const key of [`(${id})`, `(ExternalID=${id.toUpperCase()})`, `%28${id}%29/`]) {
      const { '@odata.context': context, ...record } = JSON.parse((await get(RECORDS + key)).text) as Record<
        string,
        unknown
      >
      expect([String(context).endsWith('$metadata#AttendanceRecords/$entity'), record]).toEqual([true, mark])
    }
    const selected = JSON.parse((await get(`${RECORDS}(${id})?$select=Learner`)).text) as object
    expect(Object.keys(selected)).toEqual(['@odata.context', 'Learner'])
    const v3 = await sandbox.json(
      'GET',
      `/Attendance/V3/AttendanceRecords?$filter=Attendee/ExternalID eq ${fixed.learner} and RecordedBy/ExternalID eq null&$top=1`,
    )
    const [unmarked] = (v3.body as Body).value
    expect((await get(`${RECORDS}(${String(unmarked?.['ExternalID'])})`)).status).toBe(404)
    expect((await get(`${RECORDS}(${fixed.unknown})`)).status).toBe(404)
    expect((await get(`${RECORDS}(5)`)).status).toBe(404)
  })
})

describe('a V2 read in an unusual notation', () => {
  it('accepts form-encoded queries, as clients in PHP, Java and Ruby send them, and dates without a time', async () => {
    const { read } = await useReads()
    const filter = `Learner eq ${fixed.learner} and AttendableEventStart ge 2026-03-02 and AttendableEventStart lt 2026-03-07`
    const encoded = new URLSearchParams({ $filter: filter }).toString()
    expect(encoded).toMatch(/^%24filter=Learner\+eq\+/)
    const { value } = await read(encoded)
    expect(value.length).toBeGreaterThan(0)
    expect(value).toEqual((await read(`$filter=Learner eq ${fixed.learner} and ${week}`)).value)
  })

  it.each([
    '(ID)', '(%20ID%20)', '(ExternalID=ID)', '(%20ExternalID%20=%20ID%20)', "('ID')", "(ExternalID='ID')", '(%27ID%27)/',
    '(UPPER)', "('UPPER')", '(externalid=ID)', "('ID", '(ID,ID)', '(Other=ID)', "('')", '()', '(5)', '(@k)', "('5')", "(guid'ID')",
  ])('accepts or rejects the key %s as V2 does', async (form) => {
    const { sandbox, read, get, adapter } = await useReads()
    const [mark] = (await read(`$filter=Learner eq ${fixed.learner}&$top=1`)).value
    const id = String(mark?.['ExternalID'])
    const path = RECORDS + form.replaceAll('UPPER', id.toUpperCase()).replaceAll('ID', (text, at: number, whole: string) => whole.slice(0, at).endsWith('External') ? text : id)
    const own = await get(path)
    const legacy = await sandbox.request('GET', path)
    expect(own.status).toBe(legacy.status)
    if (own.status === 200) expect(own.text.replaceAll(adapter.url, sandbox.url)).toBe(legacy.text)
  }) // prettier-ignore

  it.each([
    '',
    '$format=json',
    '$format=application/json;odata.metadata=minimal',
    '$select=Learner&format=json',
    '$format=xml',
    '$format=atom',
    '$format=',
  ])('treats the query %j in a read by key as in a read of the whole collection', async (query) => {
    const { read, get } = await useReads()
    const [mark] = (await read(`$filter=Learner eq ${fixed.learner}&$top=1`)).value
    const single = await get(`${RECORDS}(${String(mark?.['ExternalID'])})?${query}`)
    const page = await get(`${RECORDS}?$filter=Learner eq ${fixed.learner}&$top=1&${query}`)
    expect(single.status).toBe(page.status)
    if (single.status === 400) expect(single.text).toBe(page.text)
  })

  it.each([
    ...['/Learner', '/MinutesLate', '/Comment/$value', '/Present/$value', '/AttendanceHistorys', '/AttendanceHistorys/$count'],
    ...['/Learner/', '/Learner?$format=application/json;odata.metadata=none', '/Learner?$select=Present', '/Learner?$format=xml'],
    ...['/learner', '/constructor', '/Learner/$count', '/AttendanceHistorys/$value', '/$value', '/$ref', '/Learner/x', '?$count=true'],
    ...['?$top=1&$filter=x', '?$expand=AttendanceHistorys', '?$expand=*'],
  ])('answers AttendanceRecords(<id>)%s as V2 does', async (below) => {
    const { sandbox, read, get, adapter } = await startReads(onePartner({ reads: { histories: true } }))
    const [mark] = (await read(`$filter=Learner eq ${fixed.learner}&$top=1`)).value
    for (const id of [String(mark?.['ExternalID']), fixed.unknown]) {
      const path = `${RECORDS}(${id})${below}`
      const own = await get(path)
      const legacy = await sandbox.request('GET', path)
      expect([own.status, own.headers['content-type']?.includes('charset')]).toEqual([legacy.status, own.status >= 400 ? true : own.status === 204 ? undefined : false])
      if (own.status < 400) {
        expect(own.headers['content-type']).toBe(legacy.headers['content-type'])
        expect(own.text.replaceAll(adapter.url, sandbox.url)).toBe(legacy.text)
      }
    }
  }) // prettier-ignore

  it.each([
    ['minimal', '', ['@odata.context', 'ExternalID']],
    ['none', '', ['ExternalID', 'Present']],
    ['full', '', ['@odata.context', '@odata.type', 'ExternalID']],
    ['full', '?$select=Learner', ['@odata.context', '@odata.type', 'Learner']],
  ])(
    'annotates a single mark at the metadata level that Accept names: %s, with the query "%s"',
    async (level, query, names) => {
      const { read, get } = await useReads()
      const [mark] = (await read(`$filter=Learner eq ${fixed.learner}&$top=1`)).value
      const { text, headers } = await get(`${RECORDS}(${String(mark?.['ExternalID'])})${query}`, {
        Accept: `application/json;odata.metadata=${level}`,
      })
      expect(headers['content-type']).toBe(`application/json; odata.metadata=${level}`)
      expect(Object.keys(JSON.parse(text) as object).slice(0, names.length)).toEqual(names)
    },
  )

  it('prefers the metadata level in $format to the level in Accept, on every page', async () => {
    const { read, get } = await useReads()
    const full = 'application/json;odata.metadata=full'
    const headers = { Accept: 'application/json;odata.metadata=minimal', Prefer: 'maxpagesize=1' }
    const first = await read(`$filter=Learner eq ${fixed.learner}&$format=${full}`, headers)
    const next = JSON.parse((await get(local(first['@odata.nextLink']), headers)).text) as Body
    const single = await get(`${RECORDS}(${String(first.value[0]?.['ExternalID'])})?$format=${full}`, headers)
    for (const row of [first.value[0], next.value[0], JSON.parse(single.text) as Record<string, unknown>])
      expect(row).toHaveProperty(['@odata.type'])
    expect(single.headers['content-type']).toBe('application/json; odata.metadata=full')
  })

  it.each([
    ['Learner eq @p', 0],
    ['RecordedBy ne @p', 1],
    ['@p', 0],
    ['(@p eq null)', 1],
    ['Comment eq @p and @p eq @q', 1],
  ])('treats an alias without a value as null: %s', async (filter, length) => {
    const { sandbox, get } = await useReads()
    const path = `${RECORDS}?$filter=${filter} and Learner eq ${fixed.learner}&$top=1`
    const own = await get(path)
    const legacy = await sandbox.request('GET', path)
    expect([own.status, (JSON.parse(own.text) as Body).value.length]).toEqual([200, length])
    expect((JSON.parse(own.text) as Body).value).toEqual((JSON.parse(legacy.text) as Body).value)
  })

  it('returns for /$count the number of marks that match the filter, as V2 does', async () => {
    const { adapter, get, read } = await useReads()
    const all = await read(`$filter=${week}&$count=true&$top=0`)
    for (const path of [`${RECORDS}/$count`, `${RECORDS}()/$count`, '/a/v2/attendance/attendancerecords/%24count/']) {
      const query = `$filter=${week}&$top=3&$skip=2&$orderby=Learner`
      const own = await get(`${path}?${query}`)
      expect([own.status, own.headers['content-type'], own.text]).toEqual([200, 'text/plain', String(all['@odata.count'])])
    }
    const year = 'AttendableEventStart ge 2026-01-01T00:00:00Z and AttendableEventStart le 2026-06-10T00:00:00Z'
    expect(Number((await get(`${RECORDS}/$count?$filter=${year}`)).text)).toBeGreaterThan(Number(all['@odata.count']))
    expect((await get(`${RECORDS}/$count`)).status).toBe(400)
    expect((await adapter.request('POST', `${RECORDS}/$count`, { headers: sandboxHeaders })).status).toBe(405)
  }) // prettier-ignore

  it.each([
    '/a/B/v2/attendance/attendancerecords',
    '/V2/ATTENDANCE/AttendanceRecords/',
    '/V2/Attendance/AttendanceRecords()',
    '/x%2Dy/V2/Attendance/Attendance%52ecords',
  ])('repeats the path %s in contexts and links exactly as the client wrote it, as V2 does', async (path) => {
    const { sandbox, adapter, get } = await useReads()
    const query = `?$filter=${week}`
    const headers = { Prefer: 'maxpagesize=2' }
    const own = JSON.parse((await get(path + query, headers)).text) as Body & Record<string, unknown>
    const legacy = JSON.parse((await sandbox.request('GET', path + query, { headers })).text) as typeof own
    expect(own['@odata.context']).toBe(String(legacy['@odata.context']).replace(sandbox.url, adapter.url))
    const [link, other] = [own, legacy].map((body) => String(body['@odata.nextLink']).split('?')[0])
    expect(link).toBe(other?.replace(sandbox.url, adapter.url))
    const next = JSON.parse((await get(local(own['@odata.nextLink']), headers)).text) as Body
    expect(next.value).toHaveLength(2)
    const id = String(own.value[0]?.['ExternalID'])
    const key = path.replace(/(?:\(\))?\/?$/, `(${id})`)
    const single = await get(key)
    const theirs = await sandbox.request('GET', key)
    expect(single.text.replaceAll(adapter.url, sandbox.url)).toBe(theirs.text)
    const document = path.slice(0, path.replace(/\/$/, '').lastIndexOf('/'))
    const [mine, legacyOne] = [await get(document), await sandbox.request('GET', document)]
    expect(mine.text.replaceAll(adapter.url, sandbox.url)).toBe(legacyOne.text)
  })
})

it('a V2 read with $select names the selection in the context of pages and marks, as V2 does', async () => {
  const { sandbox, adapter, read, get } = await useReads()
  const filter = `$filter=Learner eq ${fixed.learner} and AttendableEvent eq ${fixed.morning}`
  for (const [select, named] of [['Learner', '(Learner)'], ['Present,ExternalID', '(Present,ExternalID)'], ['*', '']] as const) {
    const page = (await read(`${filter}&$select=${select}`)) as Body & Record<string, unknown>
    expect(page['@odata.context']).toBe(`${adapter.url}/sp-api/V2/Attendance/$metadata#AttendanceRecords${named}`)
    const id = String((await read(`${filter}&$select=ExternalID`)).value[0]?.['ExternalID'])
    for (const path of [`${RECORDS}?${filter}&$select=${select}`, `${RECORDS}(${id})?$select=${select}`]) {
      const theirs = await sandbox.request('GET', path.replaceAll(' ', '%20'))
      expect((await get(path)).text.replaceAll(adapter.url, sandbox.url)).toBe(theirs.text)
    }
  }
}) // prettier-ignore

it.each(['/V3', '/V1', '/Attendance/V3', '/Learner/V3', '/V1/Lookup/Learner', '/V2/Attendance'])(
  'the adapter returns the service document at %s, with and without a trailing slash, as the sandbox does',
  async (root) => {
    const { sandbox, adapter, get } = await useReads()
    for (const path of [root, `${root}/`]) {
      const [own, theirs] = [await get(path), await sandbox.request('GET', path)]
      expect([own.status, own.text.replaceAll(adapter.url, sandbox.url)]).toEqual([200, theirs.text])
    }
  },
)

it('the adapter accepts times in steps of 100 ns, as V2 does', async () => {
  const { sandbox, get } = await useReads()
  const before = 'AttendableEventStart ge 2026-03-02T00:00:00Z and AttendableEventStart'
  const count = async (end: string): Promise<string[]> => {
    const path = `${RECORDS}/$count?$filter=${before} ${end}`
    return [(await get(path)).text, (await sandbox.request('GET', path.replaceAll(' ', '%20'))).text]
  }
  const start = (await lastStart(get, `${before} lt 2026-03-07T00:00:00Z`)).replace('Z', '')
  const [at = '', same = ''] = await count(`le ${start}Z`)
  const [under] = await count(`le ${new Date(Date.parse(`${start}Z`) - 1).toISOString().replace('Z', '9999Z')}`)
  expect([at, Number(at) > Number(under)]).toEqual([same, true])
}) // prettier-ignore

async function lastStart(
  get: Awaited<ReturnType<typeof startReads>>['get'],
  filter: string,
): Promise<string> {
  const { text } = await get(`${RECORDS}?$filter=${filter}&$orderby=AttendableEventStart desc&$top=1`)
  return String((JSON.parse(text) as Body).value[0]?.['AttendableEventStart'])
}

describe('the V2 interface of the adapter', () => {
  it('returns the same metadata and service document as V2', async () => {
    const { sandbox, adapter, get } = await useReads()
    for (const path of ['/V2/Attendance/$metadata', '/V2/Attendance/']) {
      const own = await get(path)
      const legacy = await sandbox.request('GET', path)
      expect([own.status, own.text.replaceAll(adapter.url, sandbox.url)]).toEqual([200, legacy.text])
    }
    expect((await get('/V2/Attendance/$metadata')).text).toContain('AttendanceService.Models.OData')
  })

  it.each([
    ['', { Accept: 'application/json' }, 200],
    ['', { Accept: 'text/plain' }, 200],
    ['?format=application/xml', {}, 200],
    ['?$format=json', {}, 406],
  ])('returns the same answer as V2 to $metadata%s with %j: status %i', async (query, headers, status) => {
    const { sandbox, get } = await useReads()
    const own = await get(`/V2/Attendance/$metadata${query}`, headers)
    const legacy = await sandbox.request('GET', `/V2/Attendance/$metadata${query}`, { headers })
    expect([own.status, legacy.status]).toEqual([status, status])
    if (status === 200)
      expect([own.headers['content-type'], own.text]).toEqual(['application/xml', legacy.text])
  })

  it.each(['none', 'full', 'minimal'])(
    'returns a service document with the annotations of the metadata level %s',
    async (level) => {
      const { sandbox, adapter, get } = await useReads()
      for (const parameter of ['metadata', 'odata.metadata']) {
        const path = `/V2/Attendance?$format=application/json;${parameter}=${level}`
        const own = await get(path)
        const legacy = await sandbox.request('GET', path)
        expect(own.headers['content-type']).toBe(legacy.headers['content-type'])
        expect(own.text.replaceAll(adapter.url, sandbox.url)).toBe(legacy.text)
      }
    },
  )

  it('answers HEAD without a body', async () => {
    const { sandbox, adapter, get } = await useReads()
    const registration = `/V2/LearnerRegistations(${fixed.learner})`
    for (const path of ['/V2/Attendance/$metadata', '/V2/Attendance', registration, `${RECORDS}?$filter=x`]) {
      const head = await adapter.request('HEAD', path, { headers: sandboxHeaders })
      const { status, headers } = await get(path)
      expect([path, head.status, head.text]).toEqual([path, status, ''])
      expect(head.headers['content-type']).toBe(headers['content-type'])
    }
    const length = (await adapter.request('HEAD', '/V2/Attendance', { headers: sandboxHeaders })).headers
    const document = await sandbox.request('GET', '/V2/Attendance')
    expect(Number(length['content-length'])).toBe(document.text.length)
  })

  it('offers LearnerRegistations with the rows of LearnerRegistrations in V3', async () => {
    const { sandbox, get } = await useReads()
    const own = await get('/x/V2/LearnerRegistations?expand=Enrolments,BoarderStatuses&top=2')
    const v3 = await sandbox.json(
      'GET',
      '/V3/LearnerRegistrations?$expand=Enrolments($expand=EnrolmentStatuses),BoarderStatuses&$top=2',
    )
    expect([own.status, (JSON.parse(own.text) as Body).value]).toEqual([200, (v3.body as Body).value])
    expect(own.text).not.toContain(sandbox.url)
    expect((await get('/V2/LearnerRegistations?expand=(')).status).toBe(400)
  })

  it.each(['/V2/LearnerRegistations', '/a/B/v2/learnerregistrations', '/V2/LearnerRegistrations'])(
    'offers %s with reads by key, $count and links to the same path, as V2 does',
    async (path) => {
      const { sandbox, adapter, get } = await useReads()
      const same = async (request: string, headers: Record<string, string> = {}) => {
        const own = await get(request, headers)
        const legacy = await sandbox.request('GET', request, { headers })
        expect([own.status, own.text.replaceAll(adapter.url, sandbox.url)]).toEqual([
          legacy.status,
          legacy.text,
        ])
        return own
      }
      const page = await same(`${path}?$top=3`, { Prefer: 'maxpagesize=2' })
      const body = JSON.parse(page.text) as Body
      const link = String(body['@odata.nextLink'])
      expect(link.startsWith(`${adapter.url}${path}?`)).toBe(true)
      const rest = JSON.parse((await same(local(link), { Prefer: 'maxpagesize=2' })).text) as Body
      expect(rest.value).toHaveLength(1)
      const id = String(body.value[0]?.['ExternalID'])
      for (const key of [`(${id})`, `(%20${id}%20)`, `('${id}')/`, `(ExternalID=${id.toUpperCase()})`])
        expect((await same(path + key)).status).toBe(200)
      for (const key of [`(${fixed.unknown})`, '(5)', `(Other=${id})`])
        expect((await get(path + key)).status).toBe(404)
      for (const below of [
        'UPNHistory',
        'Enrolments/$count',
        'UniquePupilNumber',
        'LocalUPN/$value',
        'Nothing',
      ])
        await same(`${path}(${id})/${below}`)
      const slash = JSON.parse((await get(`${path}/`, { Prefer: 'maxpagesize=2' })).text) as Body
      expect(String(slash['@odata.nextLink']).startsWith(`${adapter.url}${path}/?`)).toBe(true)
      const expanded = await get(`${path}(${id})?expand=Enrolments`)
      expect(Object.keys(JSON.parse(expanded.text) as object)).toContain('Enrolments')
      expect(expanded.text).toContain('EnrolmentStatuses')
      const count = await same(`${path}/$count`)
      expect([count.headers['content-type'], Number(count.text) > 20]).toEqual(['text/plain', true])
      expect((await same(`${path}/$count?$filter=ExternalID%20eq%20${id}`)).text).toBe('1')
    },
  )

  it.each([
    ['/**/V3/LearnerRegistrations', 200],
    ['/**/V2/LearnerRegistations', 404],
  ])('offers LearnerRegistations only if passThrough allows the V3 path: %s', async (path, status) => {
    const { get } = await startReads({ passThrough: { allow: [path] } })
    expect((await get('/x/V2/LearnerRegistations?$top=1')).status).toBe(status)
  })
})

describe('a V2 read when V3 fails', () => {
  const json = { 'Content-Type': 'application/json' }
  it.each([
    ['401', replyWith(401, '{"statusCode":401,"message":"expired"}', json), 401, 'expired'],
    ['403', replyWith(403, '{"statusCode":403,"message":"no permission"}', json), 403, 'no permission'],
    ['400', replyWith(400, '{"error":{"code":"X1","message":"bad filter"}}', json), 400, 'X1'],
    ['500', replyWith(500, 'oops', json), 502, 'status 500'],
    ['HTML', replyWith(200, '<html>', json), 502, 'cannot be read'],
    ['an object that is not a collection', replyWith(200, '{"a":1}', json), 502, 'is not a collection'],
    ['a row that is not a mark', replyWith(200, '{"value":[{"a":1}]}', json), 502, 'not an attendance record'],
    ['a next link to itself', replyWith(200, '{"value":[],"@odata.nextLink":"http://x/y?a=1"}', json), 502, 'to the same page'],
  ] as const)('ends with an error when V3 answers %s', async (_name, answer, status, text) => {
    const { adapter } = await startWithV3(answer)
    const reply = await adapter.request('GET', `${RECORDS}?$filter=Present%20eq%20true`)
    expect([reply.status, reply.text]).toEqual([status, expect.stringContaining(text)])
  }) // prettier-ignore

  it('ends with an error, and never with fewer rows, when a page of V3 breaks off', async () => {
    const { sandbox, get } = await startReads()
    const query = `${RECORDS}?$filter=${week}`
    await sandbox.put('faults', {
      kind: 'truncate',
      bytes: 400,
      method: 'GET',
      path: 'AttendanceRecords',
      count: 1,
    })
    expect((await get(query)).status).toBe(502)
    expect((await get(query)).status).toBe(200)
  })

  it('waits as long as V3 requests with Retry-After, and then continues', async () => {
    const { sandbox, get } = await useReads()
    await sandbox.put('faults', {
      kind: 'rateLimit',
      retryAfterSeconds: 1,
      method: 'GET',
      path: 'AttendanceRecords',
      count: 1,
    })
    expect((await get(`${RECORDS}?$filter=${week}&$top=1`)).status).toBe(200)
  })
})
