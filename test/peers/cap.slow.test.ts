import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { Pool } from 'undici'
import { describe, expect, it, onTestFinished } from 'vitest'
import { stringify } from 'yaml'

import { startCli } from '../cli/run-cli.ts'
import type { Fault } from '../faults/proxy/fault.ts'
import { type FaultProxy, startFaultProxy } from '../faults/proxy/fault-proxy.ts'
import {
  batchOf,
  batchPath,
  created,
  failuresOf,
  flatRecord,
  guid,
  outcomesOf,
  postRecords,
} from '../support/batch-request.ts'
import { atEndOfFile } from '../support/end-of-file.ts'
import { type Adapter, clientHeaders, onePartner, startAdapter } from '../support/start-adapter.ts'
import { installCap, startCap } from './start-cap.ts'

const missing = installCap()
if (missing !== undefined) console.warn(`test/peers is skipped. ${missing}`)
const onEnd = atEndOfFile()
const capPromise = missing === undefined ? startCap(onEnd) : undefined
async function theCap() {
  const cap = await capPromise
  if (cap === undefined) throw new Error('CAP is not installed')
  return cap
}

const modes = [
  ['one by one', { writeMode: 'single' }],
  ['in multipart batches', { writeMode: 'batch', batchFormat: 'multipart' }],
  ['in JSON batches', { writeMode: 'batch', batchFormat: 'json' }],
  ['in write mode auto', { writeMode: 'auto' }],
] as const
const COUNT = 30

let events = 700_000
/** Returns an event for which no other test writes marks. */
const nextEvent = (): string => guid((events += 1))
const recordsOf = (event: string, count = COUNT, fields: object = {}): object[] =>
  Array.from({ length: count }, (_, index) =>
    flatRecord(index + 1, {
      AttendableEvent: event,
      MinutesLate: index % 3 === 0 ? null : index,
      Comment: index % 4 === 0 ? `no. ${index} “é”` : null,
      ...fields,
    }),
  )
const learnersOf = (count: number): string[] => Array.from({ length: count }, (_, index) => guid(index + 1))
const isWrite = (head: string): boolean => head.startsWith('POST')

/** Starts a proxy that applies these faults to the first writes, and lets later requests pass. `heads` collects all request heads. */
async function strike(port: number, faults: Fault[], heads: string[] = []): Promise<FaultProxy> {
  const proxy = await startFaultProxy({
    targets: [port],
    plan: {
      connection: () => 'pass',
      request: (head) => {
        heads.push(head)
        return (isWrite(head) ? faults.shift() : undefined) ?? { kind: 'pass' }
      },
    },
  })
  onTestFinished(() => proxy.close())
  return proxy
}

describe.skipIf(missing !== undefined)('a batch that the adapter posts to SAP CAP as V3', () => {
  describe.each(modes)('with records written %s', (_mode, mode) => {
    const writing = (v3: object = {}) =>
      onePartner({ v3: { ...mode, readBackAfterMs: [50, 200], batchRecordMs: 20, ...v3 } })
    const learnersIn = async (event: string): Promise<string[]> =>
      (await theCap()).marks(event).map((mark) => mark.Attendee_ExternalID)

    it.each([['full'], ['minimal']])(
      'is stored with one mark per record if the body profile is %s',
      async (bodyProfile) => {
        const heads: string[] = []
        const { url } = await strike((await theCap()).port, [], heads)
        const adapter = await startAdapter(url, writing({ bodyProfile }))
        const event = nextEvent()
        const parts = await postRecords(adapter, recordsOf(event))
        expect(failuresOf(parts)).toEqual(created(COUNT))
        // Every reply is readable, so the adapter reads nothing back.
        expect(heads.filter((head) => !isWrite(head))).toEqual([])
        expect(await learnersIn(event)).toEqual(learnersOf(COUNT))
        // CAP returns missing values as null.
        expect(parts[1]?.json).toMatchObject({
          Present: true,
          MinutesLate: 1,
          Comment: null,
          RecordedBy: null,
        })
      },
    )

    it('gets V2 errors for an unknown event and an unknown code, and its other records are stored', async () => {
      const adapter = await startAdapter((await theCap()).url, writing())
      const event = nextEvent()
      const none = `ffffffff${guid(1).slice(8)}`
      const [first = {}, second = {}, third = {}, ...others] = recordsOf(event)
      const parts = await postRecords(adapter, [
        { ...first, AttendableEvent: none },
        { ...second, AttendableEvent: none, SchoolAttendanceCode: none },
        { ...third, SchoolAttendanceCode: none },
        ...others,
      ])
      expect(failuresOf(parts)).toEqual([
        { status: 400, codes: ['ATT_VAL_2'] },
        { status: 400, codes: ['ATT_VAL_2', 'ATT_VAL_3'] },
        { status: 400, codes: ['ATT_VAL_3'] },
        ...created(COUNT - 3),
      ])
      expect(await learnersIn(event)).toEqual(learnersOf(COUNT).slice(3))
    })

    it('is read back by ids in upper case if the replies were lost', async () => {
      const { port } = await theCap()
      const adapter = await startAdapter((await strike(port, [{ kind: 'resetAfter' }])).url, writing())
      const id = (n: number): string => `abcdef${guid(n).slice(6)}`
      const event = id((events += 1))
      const parts = await postRecords(adapter, [
        flatRecord(1, { Learner: id(1).toUpperCase(), AttendableEvent: event.toUpperCase() }),
        flatRecord(2, { Learner: id(2).toUpperCase(), AttendableEvent: event.toUpperCase() }),
      ])
      expect(failuresOf(parts)).toEqual(created(2))
      expect(parts[0]?.json).toMatchObject({ Learner: id(1).toUpperCase() })
      expect(await learnersIn(event)).toEqual([id(1), id(2)])
    })

    it.each<[string, Fault, object]>([
      ['lost after the write', { kind: 'resetAfter' }, {}],
      ['cut off', { kind: 'truncate', bytes: 500 }, {}],
      ['late', { kind: 'stall', ms: 5_000 }, { timeouts: { headersMs: 2_000, bodyMs: 2_000 } }],
      ['lost together with the request', { kind: 'resetBefore' }, {}],
    ])('is stored with one mark per record if replies are %s', async (_what, fault, v3) => {
      const { port } = await theCap()
      const write = async (bodyProfile: string): Promise<void> => {
        const { url } = await strike(port, Array<Fault>(3).fill(fault))
        const adapter = await startAdapter(url, { ...writing({ bodyProfile }), v3 })
        const event = nextEvent()
        expect(failuresOf(await postRecords(adapter, recordsOf(event)))).toEqual(created(COUNT))
        expect(await learnersIn(event)).toEqual(learnersOf(COUNT))
      }
      await Promise.all([write('full'), write('minimal')])
    })

    it('is stored with one mark per record if the adapter is killed before the replies arrive', async () => {
      const { port } = await theCap()
      const proxy = await strike(port, Array<Fault>(COUNT).fill({ kind: 'stall', ms: 60_000 }))
      const folder = mkdtempSync(join(tmpdir(), 'markbridge-peers-'))
      onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
      const config = {
        ...writing({ concurrency: 8 }),
        listen: { port: 0 },
        upstreams: { v3: { baseUrl: proxy.url } },
        journal: { url: `sqlite:${folder}/journal.db` },
      }
      const event = nextEvent()
      const batch = batchOf(recordsOf(event))
      const begun = await serve(config)
      const lost = begun.post(batch.headers, batch.body).catch(() => undefined)
      await expect.poll(() => learnersIn(event), { timeout: 60_000 }).not.toEqual([])
      await begun.kill()
      await lost
      proxy.stopFaults()
      const again = await serve(config)
      const reply = await again.post(batch.headers, batch.body)
      expect(outcomesOf(reply)).toEqual(created(COUNT))
      expect(await learnersIn(event)).toEqual(learnersOf(COUNT))
    })
  })
})

async function serve(config: object) {
  const folder = mkdtempSync(join(tmpdir(), 'markbridge-peers-'))
  const cli = startCli(['serve', '--config', write(folder, config)])
  const kill = (): Promise<unknown> => cli.stop('SIGKILL')
  onTestFinished(async () => {
    await kill()
    rmSync(folder, { recursive: true, force: true })
  })
  const [, url = ''] = /ready (http\S+)/.exec(await cli.until(/ready http\S+\n/)) ?? []
  const pool = new Pool(url, { connections: 1, headersTimeout: 0 })
  onTestFinished(() => pool.destroy())
  return {
    kill,
    post: async (headers: Readonly<Record<string, string>>, body: string) => {
      const reply = await pool.request({
        method: 'POST',
        path: batchPath,
        headers: { ...clientHeaders, ...headers },
        body,
      })
      return { headers: reply.headers, text: await reply.body.text() }
    },
  }
}

function write(folder: string, config: object): string {
  const file = join(folder, 'markbridge.yaml')
  writeFileSync(file, stringify(config))
  return file
}

/** Fills CAP with marks of two events once, and starts an adapter for all reads. */
const reading = async () => (readAdapter ??= startReading())
let readAdapter: Promise<Adapter> | undefined

async function startReading(): Promise<Adapter> {
  const cap = await theCap()
  fill(1, 1_000)
  fill(2, 2_345)
  // CAP returns no rows for sessions without a mark, and the marks below have no `RecordedBy`.
  const reads = { needsRecordedBy: false, unmarkedCodes: [] }
  return startAdapter(cap.url, onePartner({ reads }), {}, onEnd)

  /** Writes the marks of this many learners for an event into the table. */
  function fill(event: number, count: number): void {
    cap.execute(`WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${count})
      INSERT INTO Marks (ExternalID, Present, Absent, RecordedOn, AttendableEventStart, Attendee_ExternalID, Event_ExternalID,
        AttendanceCode_ExternalID, Qualifier_MinutesLate, Qualifier_Comment)
      SELECT printf('abcdef0${event}-0000-4000-8000-%012d', n), n % 2, 1 - n % 2, '2026-06-10T10:00:00.000Z', '2026-06-1${event}T08:00:00.000Z',
        printf('00000000-0000-4000-8000-%012d', n), '${eventOf(event)}', '${guid(800_000)}', CASE n % 5 WHEN 0 THEN n % 60 END,
        CASE n % 7 WHEN 0 THEN 'no. ' || n END
      FROM n`)
  }
}

const eventOf = (event: number): string => `abcdef99-0000-4000-8000-00000000000${event}`
const ofEvent = (event: number): string => `AttendableEvent eq ${eventOf(event)}`

interface Page {
  readonly value: readonly { readonly Learner: string; readonly ExternalID: string }[]
  readonly '@odata.nextLink'?: string
  readonly '@odata.count'?: number
}

async function get(path: string, headers: Record<string, string> = {}) {
  const { status, text } = await (await reading()).request('GET', path, { headers })
  return { status, json: JSON.parse(text) as Page & { error?: { code: string; message: string } } }
}

const marks = (filter: string, options = '', headers: Record<string, string> = {}) =>
  get(`/V2/Attendance/AttendanceRecords?$filter=${encodeURIComponent(filter)}${options}`, headers)

/** Follows next links from a page, and returns the learners of each page. */
async function follow(first: Promise<{ status: number; json: Page }>): Promise<string[][]> {
  const pages: string[][] = []
  for (let page = await first; ;) {
    pages.push(page.json.value.map((mark) => ('Learner' in mark ? mark.Learner : '')))
    const next: string | undefined = page.json['@odata.nextLink']
    if (next === undefined) return pages
    const { pathname, search } = new URL(next)
    page = await get(pathname + search)
  }
}

describe.skipIf(missing !== undefined)('a V2 read with SAP CAP as V3', () => {
  it.each([
    ['all', '', 1_000],
    [`Learner eq ${guid(7)}`, '', 1],
    [`Learner in (${guid(7)},${guid(8)})`, '', 2],
    ['Present', '', 500],
    ['not Present', '', 500],
    ['Present or Absent', '', 1_000],
    ['not (MinutesLate eq null)', '', 200],
    ['MinutesLate gt 30 and Present eq true', '', 49],
    ["contains(Comment,'no. 14')", '', 3],
    ["startswith(tolower(Comment),'no. 7')", '', 18],
    ['Comment ne null', '', 142],
    ['AttendableEventStart ge 2026-06-11 and AttendableEventStart lt 2026-06-12', '', 1_000],
    ['all', '&$top=3&$orderby=Learner%20desc&$skip=1', 3],
    ['all', '&$select=Learner,Comment', 1_000],
  ])('finds the marks of the filter "%s" with the options "%s"', async (filter, options, count) => {
    const own = filter === 'all' ? ofEvent(1) : `${ofEvent(1)} and (${filter})`
    const { status, json } = await marks(own, `&$count=true${options}`)
    expect([status, json.value.length]).toEqual([200, count])
    if (options.includes('$skip')) {
      expect(json.value.map((mark) => mark.Learner)).toEqual([999, 998, 997].map(guid))
      expect(json['@odata.count']).toBe(1_000)
    }
  })

  it('finds marks by ids in upper case', async () => {
    const { json } = await marks(
      ofEvent(1).toUpperCase().replaceAll('ATTENDABLEEVENT EQ', 'AttendableEvent eq'),
    )
    expect(json.value.length).toBe(1_000)
    const id = `ABCDEF01-0000-4000-8000-${guid(7).slice(24)}`
    const { status, json: mark } = await get(`/V2/Attendance/AttendanceRecords(${id})`)
    expect([status, mark]).toEqual([200, expect.objectContaining({ Learner: guid(7) })])
    expect((await get(`/V2/Attendance/AttendanceRecords(${guid(7)})`)).status).toBe(404)
  })

  it('returns a single page without a next link if exactly 1,000 marks match', async () => {
    expect((await follow(marks(ofEvent(1)))).map((page) => page.length)).toEqual([1_000])
  })

  it.each([
    ['in pages of the size of the service', {}, '', [1_000, 1_000, 345]],
    ['in smaller pages', { Prefer: 'odata.maxpagesize=900' }, '', [900, 900, 545]],
    ['up to $top', {}, '&$top=1500', [1_000, 500]],
  ])('returns each mark once, %s', async (_what, headers, options, sizes) => {
    const pages = await follow(marks(ofEvent(2), `&$orderby=Learner${options}`, headers))
    const found = pages.flat()
    expect(found.length).toBe(new Set(found).size)
    expect(found).toEqual(found.toSorted())
    if (Object.keys(headers).length === 0) expect(pages.map((page) => page.length)).toEqual(sizes)
    else expect(found.length).toBe(sizes.reduce((sum, size) => sum + size, 0))
  })

  it.each([
    ['Present eq', '$filter, character 8'],
    ['Pupil eq 1', '$filter, character 0'],
  ])('reports the position of an error in the query of the client: %s', async (filter, place) => {
    const { status, json } = await marks(filter)
    expect([status, json.error?.code]).toEqual([400, 'ADP_QUERY'])
    expect(json.error?.message).toContain(place)
  })
})

describe.skipIf(missing !== undefined)('a request that the adapter passes through to SAP CAP', () => {
  const root = '/Attendance/V3'
  const filter = encodeURIComponent(`Event/ExternalID eq ${eventOf(2)}`)

  it.each([
    [`${root}/`, 200],
    [`${root}/$metadata?$format=application/json`, 200],
    [`${root}/AttendanceRecords?$filter=${filter}&$top=2`, 200],
    [`${root}/AttendanceRecords(abcdef01-0000-4000-8000-${guid(7).slice(24)})`, 200],
    [`${root}/AttendanceRecords(${guid(7)})`, 404],
    [`${root}/AttendanceRecords?$filter=Nothing%20eq%201`, 400],
  ])('gets the reply of CAP for %s', async (path, status) => {
    const direct = await fetch(`${(await theCap()).url}${path}`)
    const through = await get(path)
    expect([through.status, through.json]).toEqual([status, await direct.json()])
  })

  it('reaches all pages by next links', async () => {
    const sizes: number[] = []
    for (let path: string | undefined = `AttendanceRecords?$filter=${filter}`; path !== undefined;) {
      const { status, json } = await get(`${root}/${path}`)
      expect(status).toBe(200)
      sizes.push(json.value.length)
      path = json['@odata.nextLink']
    }
    expect(sizes).toEqual([1_000, 1_000, 345])
  })

  it('gets a page of full size even with Prefer: odata.maxpagesize, which CAP ignores', async () => {
    const { json } = await get(`${root}/AttendanceRecords?$filter=${filter}`, {
      Prefer: 'odata.maxpagesize=10',
    })
    expect(json.value.length).toBe(1_000)
  })
})

/** Filters that CAP rejects. */
const limits: readonly (readonly [what: string, filter: string, message: string])[] = [
  ['the function cast', "cast(MinutesLate,Edm.String) eq '5'", 'Function "cast" is not supported'],
  ['the function isof', 'isof(Comment,Edm.String)', 'Function "isof" is not supported'],
  ['a list in brackets', 'MinutesLate in [1,2]', 'Parsing URL failed: Expected a list'],
  ['arithmetic', 'MinutesLate add 1 eq 6', 'Parsing URL failed: Expected "eq"'],
  ['a duration', "RecordedOn add duration'P1D' lt 2026-03-02T00:00:00Z", 'Parsing URL failed: Expected'],
]

describe.skipIf(missing !== undefined)('a V2 read that SAP CAP does not support', () => {
  it.each(limits)('reports that CAP rejects a filter with %s', async (_what, filter, message) => {
    const { status, json } = await marks(`${ofEvent(1)} and ${filter}`)
    expect([status, json.error?.code]).toEqual([400, 'ADP_UPSTREAM_REFUSED'])
    expect(json.error?.message).toContain(message)
  })
})
