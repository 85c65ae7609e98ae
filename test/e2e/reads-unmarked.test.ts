import { describe, expect, it } from 'vitest'

import { fixed, jsonBody, sandboxHeaders, startSandbox } from '../sandbox/start-sandbox.ts'
import { replyWith, startUpstream } from '../support/scripted-upstream.ts'
import { type AdapterSettings, onePartner, startAdapter, startWithV3 } from '../support/start-adapter.ts'

const RECORDS = '/V2/Attendance/AttendanceRecords'
const filter = `$filter=Learner%20eq%20${fixed.learner}%20and%20AttendableEvent%20eq%20${fixed.morning}`

interface Body {
  readonly value: readonly { readonly ExternalID: string; readonly SchoolAttendanceCode: string }[]
}

/** Starts a sandbox in which the code `-` is recorded for a session, and an adapter in front of the sandbox. */
async function startMarked(settings: AdapterSettings = {}) {
  const sandbox = await startSandbox()
  const lookup = await sandbox.json('GET', "/Attendance/V3/AttendanceLookups?$filter=Code%20eq%20'-'")
  const [code] = (lookup.body as { value: { ExternalID: string }[] }).value
  const posted = await sandbox.json('POST', '/Attendance/V3/AttendanceRecords', {
    headers: jsonBody,
    body: JSON.stringify({
      Attendee: { ExternalID: fixed.learner },
      Event: { ExternalID: fixed.morning },
      AttendanceCode: { ExternalID: code?.ExternalID },
      Qualifier: { MinutesLate: null, Comment: null },
    }),
  })
  expect([posted.status, (posted.body as { RecordedBy: unknown }).RecordedBy]).toEqual([
    201,
    { ExternalID: expect.any(String) as unknown, Type: expect.any(String) as unknown },
  ])
  const adapter = await startAdapter(sandbox.url, settings)
  const get = (path: string) => adapter.request('GET', path, { headers: sandboxHeaders })
  const { ExternalID: id } = posted.body as { ExternalID: string }
  const seen = async (): Promise<unknown> => [
    (JSON.parse((await get(`${RECORDS}?${filter}`)).text) as Body).value.length,
    (await get(`${RECORDS}/$count?${filter}`)).text,
    (await get(`${RECORDS}(${id})`)).status,
  ]
  return { sandbox, adapter, get, id, code: code?.ExternalID ?? '', seen }
}

describe('a row with an unmarked code', () => {
  it('is left out of pages, counts and reads by key by default if the row has the code "-"', async () => {
    const { seen, get } = await startMarked()
    for (let times = 0; times < 2; times += 1) expect(await seen()).toEqual([0, '0', 404])
    const day = '$filter=AttendableEventStart%20eq%202026-03-02T09:00:00Z&$count=true'
    const { value, '@odata.count': count } = JSON.parse((await get(`${RECORDS}?${day}`)).text) as Body & {
      '@odata.count': number
    }
    expect(value.length).toBe(count)
    expect(value.length).toBeGreaterThan(20)
  })

  it.each([
    ['no code', [], [1, '1', 200]],
    ['another code', ['/'], [1, '1', 200]],
    ['codes that the school does not have', ['?', 'ZZ9'], [1, '1', 200]],
    ['its code among others', ['/', '-'], [0, '0', 404]],
  ])(
    'is left out only if reads.unmarkedCodes contains the code of the row: %s',
    async (_name, unmarkedCodes, expected) => {
      const { seen } = await startMarked(onePartner({ reads: { unmarkedCodes } }))
      expect(await seen()).toEqual(expected)
    },
  )

  it('is recognised by a configured code id without a code lookup', async () => {
    const { sandbox, code, get, id } = await startMarked()
    const upstream = await startUpstream(async ({ url, headers }, response) => {
      const reply = await sandbox.request('GET', url, {
        headers: { authorization: String(headers.authorization) },
      })
      response.writeHead(reply.status, { 'Content-Type': 'application/json' }).end(reply.text)
    })
    const named = await startAdapter(
      upstream.url,
      onePartner({ reads: { unmarkedCodes: [code.toUpperCase()] } }),
    )
    const reply = await named.request('GET', `${RECORDS}(${id})`, { headers: sandboxHeaders })
    expect([reply.status, upstream.seen.length, (await get(`${RECORDS}(${id})`)).status]).toEqual([
      404, 1, 404,
    ])
  })

  it('causes a single code lookup, after which V3 filters the rows out of reads', async () => {
    const { sandbox } = await startMarked()
    const { upstream, adapter } = await startWithV3(async ({ url, headers }, response) => {
      const reply = await sandbox.request('GET', url, {
        headers: { authorization: String(headers.authorization) },
      })
      response.writeHead(reply.status, { 'Content-Type': 'application/json' }).end(reply.text)
    })
    for (let times = 0; times < 3; times += 1)
      await adapter.request('GET', `${RECORDS}?${filter}`, { headers: sandboxHeaders })
    const asked = upstream.seen.map(({ url }) => decodeURIComponent(url))
    expect(asked.map((url) => /V3\/(\w+)/.exec(url)?.[1])).toEqual([
      'AttendanceRecords',
      'AttendanceLookups',
      'AttendanceRecords',
      'AttendanceRecords',
    ])
    expect(asked[1]).toContain("$filter=Code eq '-'")
    expect(asked.map((url) => url.includes('AttendanceCode/ExternalID ne '))).toEqual([
      false,
      false,
      true,
      true,
    ])
    expect(adapter.events().filter(({ msg }) => msg === 'read answered')).toEqual(
      Array.from({ length: 3 }, () => expect.objectContaining({ rows: 0, pages: 1 }) as unknown),
    )
  })
})

describe('a code lookup for reads.unmarkedCodes', () => {
  const mark = {
    ExternalID: fixed.unknown,
    RecordedBy: { ExternalID: fixed.zero },
    Attendee: { ExternalID: fixed.learner },
    Event: { ExternalID: fixed.morning },
    AttendanceCode: { ExternalID: fixed.present },
  }
  it.each([
    ['is not a collection', replyWith(200, { a: 1 }), 502, 'AttendanceLookups'],
    ['cannot be read', replyWith(500, 'oops'), 502, 'AttendanceLookups'],
    ['is not available', replyWith(503, ''), 503, 'AttendanceLookups'],
    [
      'links to itself',
      replyWith(200, { value: [], '@odata.nextLink': 'http://x/y?a=1' }),
      502,
      'to the same page',
    ],
  ])(
    'fails the read, and is repeated with the next read, if the lookup %s',
    async (_name, answer, status, text) => {
      let fails = true
      const upstream = await startUpstream((seen, response) => {
        if (!seen.url.includes('Lookups'))
          return replyWith(200, seen.url.includes('(') ? mark : { value: [mark] })(seen, response)
        return fails ? answer(seen, response) : replyWith(200, { value: [] })(seen, response)
      })
      const adapter = await startAdapter(upstream.url, onePartner({ v3: { budgetMs: 1_500 } }))
      for (const path of [
        `${RECORDS}?$filter=true`,
        `${RECORDS}(${fixed.unknown})`,
        `${RECORDS}/$count?$filter=true`,
      ]) {
        const reply = await adapter.request('GET', path)
        expect([reply.status, reply.text]).toEqual([status, expect.stringContaining(text)])
        expect(reply.text).not.toContain(fixed.present)
      }
      fails = false
      const reply = await adapter.request('GET', `${RECORDS}?$filter=true`)
      expect([reply.status, (JSON.parse(reply.text) as Body).value.length]).toEqual([200, 1])
    },
  )

  it.each([
    ['is missing', replyWith(404, { error: { code: 'NotFound', message: 'no' } }), 404],
    ['refuses the filter', replyWith(400, { error: { code: 'X1', message: 'bad' } }), 400],
    ['is refused to the client', replyWith(403, { statusCode: 403, message: 'no permission' }), 403],
  ])(
    'disables the configured code letters, and logs this a single time, if the lookup %s',
    async (_name, answer, status) => {
      const { upstream, adapter } = await startWithV3((seen, response) =>
        (seen.url.includes('Lookups') ? answer : replyWith(200, { value: [mark] }))(seen, response),
      )
      for (let times = 0; times < 2; times += 1) {
        const reply = await adapter.request('GET', `${RECORDS}?$filter=true`)
        expect([reply.status, (JSON.parse(reply.text) as Body).value.length]).toEqual([200, 1])
      }
      expect(upstream.seen.filter(({ url }) => url.includes('Lookups'))).toHaveLength(1)
      expect(adapter.events().filter(({ msg }) => String(msg).includes('unmarkedCodes'))).toMatchObject([
        { partner: expect.any(String) as unknown, status },
      ])
    },
  )

  it('is not needed for a read that finds no mark', async () => {
    const { upstream, adapter } = await startWithV3((seen, response) =>
      seen.url.includes('Lookups')
        ? replyWith(500)(seen, response)
        : replyWith(200, { value: [{ ...mark, RecordedBy: null }] })(seen, response),
    )
    const reply = await adapter.request('GET', `${RECORDS}?$filter=true`)
    expect([reply.status, (JSON.parse(reply.text) as Body).value, upstream.seen.length]).toEqual([200, [], 1])
  })
})
