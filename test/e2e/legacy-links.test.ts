import { describe, expect, it } from 'vitest'

import { openJournal } from '../../src/journal/index.ts'
import { journalFile } from './support/journal-file.ts'
import { type Adapter, startAdapter } from '../support/start-adapter.ts'
import { replyWith, startUpstream, type Upstream } from '../support/scripted-upstream.ts'

const path = '/live/V2/Attendance/AttendanceRecords'
const legacy = [{ id: 'acme', match: { any: true }, stage: 'legacy' }]

interface Sides {
  readonly v2: Upstream
  readonly v3: Upstream
  readonly adapter: Adapter
}

/** Starts V2, V3 and an adapter. The pages of V2 contain links to V2 itself, below the path /base. */
async function startSides(stage = 'legacy', sections: object = {}): Promise<Sides> {
  const v2 = await startUpstream((seen, response) => {
    const base = `http://${seen.headers.host ?? ''}`
    const body = {
      '@odata.context': `${base}/base${path}/$metadata`,
      value: [{ '@odata.id': `${base}/base${path}(1)`, Comment: `${base}/base${path}` }],
      '@odata.nextLink': `${base}/base${path}?$skiptoken=2`,
    }
    return replyWith(200, body, { 'X-Base': base })(seen, response)
  })
  const v3 = await startUpstream(replyWith(200, { value: [] }))
  const partners = [{ ...legacy[0], stage }]
  const adapter = await startAdapter(v3.url, { v2: { baseUrl: `${v2.url}/base` }, partners, ...sections })
  return { v2, v3, adapter }
}

describe('links in replies of V2', () => {
  it('lead to the adapter, and next links contain the marker /~v2 in their path', async () => {
    const { v2, adapter } = await startSides()
    const { text } = await adapter.request('GET', `${path}?$filter=x`, {
      headers: { 'Accept-Encoding': 'gzip' },
    })
    const { url } = adapter
    expect(JSON.parse(text)).toEqual({
      '@odata.context': `${url}${path}/$metadata`,
      value: [{ '@odata.id': `${url}${path}(1)`, Comment: `${v2.url}/base${path}` }],
      '@odata.nextLink': `${url}/~v2${path}?$skiptoken=2`,
    })
    expect(v2.seen[0]?.headers['accept-encoding']).toBe('identity')
    await adapter.request('GET', `/~v2${path}?$skiptoken=2`)
    expect(v2.seen[1]?.url).toBe(`/base${path}?$skiptoken=2`)
  })

  it('stay unchanged in replies to writes, and in all replies if rewriteLinks is false', async () => {
    const { v2, adapter } = await startSides()
    const written = await adapter.request('POST', path, { body: '{}' })
    expect(written.text).not.toContain(adapter.url)
    const off = await startAdapter(v2.url, {
      v2: { baseUrl: `${v2.url}/base` },
      partners: legacy,
      passThrough: { rewriteLinks: false },
    })
    const read = await off.request('GET', path, { headers: { 'Accept-Encoding': 'gzip' } })
    expect(read.text).toBe(written.text)
    expect(v2.seen.at(-1)?.headers['accept-encoding']).toBe('gzip')
  })

  it('lead a read to V2 at stage v3 but not at stage complete, and never lead a write to V2', async () => {
    const marked = `/~v2${path}?$filter=Learner%20eq%2000000000-0000-0000-0000-000000000001`
    for (const [stage, count] of [['v3', 1], ['complete', 0]] as const) {
      const { v2, adapter } = await startSides(stage)
      await adapter.request('GET', marked)
      expect(v2.seen.length).toBe(count)
      await adapter.request('POST', `/~v2${path}`, { body: '{}' })
      expect(v2.seen.length).toBe(count)
    }
  }) // prettier-ignore
})

describe('the adapter in front of V2', () => {
  it.each(['legacy', 'v3'])(
    'forwards, at stage %s, a path with the marker /~v2 only if it is a path of V2',
    async (stage) => {
      const { v2, adapter } = await startSides(stage)
      expect((await adapter.request('GET', '/~v2/admin/secrets')).status).toBe(404)
      await adapter.request('GET', '/~v2/Learner/V3/LearnerPersonals')
      // A load balancer that blocks /metrics does not block /~v2/metrics, so the adapter must not serve its own paths below /~v2.
      for (const own of ['/metrics', '/healthz', '/readyz'])
        expect((await adapter.request('GET', `/~v2${own}`)).status).toBe(404)
      expect(v2.seen).toEqual([])
    },
  )

  it.each([
    ['a method that the path does not accept', 'DELETE', path, 405],
    ['a path with dot segments', 'GET', `${path}/../x`, 400],
    ['an ambiguous path behind the marker of V2', 'GET', '/~v2//V2/x', 400],
    ['a write to a path that no route has', 'POST', '/V2/Other', 405],
  ] as const)('refuses %s, and sends nothing to V2', async (_name, method, target, status) => {
    const { v2, adapter } = await startSides()
    expect((await adapter.request(method, target)).status).toBe(status)
    expect(v2.seen).toEqual([])
  })
})

describe('next links in replies of V3', () => {
  const v3Page = (url: string): object => ({
    value: [],
    '@odata.nextLink': `${url}/V3/LearnerRegistrations?$skiptoken=9`,
  })

  it('lead the client that received the links to V3 even after V2 serves again', async () => {
    const v2 = await startUpstream(replyWith(200, { from: 'V2' }))
    const v3 = await startUpstream((seen, response) =>
      replyWith(200, v3Page(`http://${seen.headers.host ?? ''}`))(seen, response),
    )
    const { url } = journalFile()
    const at = (stage: string): Promise<Adapter> =>
      startAdapter(
        v3.url,
        { v2: { baseUrl: v2.url }, partners: [{ ...legacy[0], stage }] },
        // An adapter that gets its journal as a function has no store of stages, so the configured stage applies.
        { openJournal: () => openJournal({ url }) },
      )
    const [moved, legacyAgain] = [await at('v3'), await at('legacy')]
    const read = await moved.request('GET', '/x/V2/LearnerRegistations')
    const { '@odata.nextLink': link } = JSON.parse(read.text) as { '@odata.nextLink': string }
    expect(link.replace(moved.url, '')).toMatch(/^\/~v3\.[\w-]{22}\/x\/V2\/LearnerRegistations/)
    const asked = v3.seen.length
    const next = await legacyAgain.request('GET', link.replace(moved.url, ''))
    expect([next.status, v3.seen.length, v2.seen.length]).toEqual([200, asked + 1, 0])
    const Authorization = 'bearer of another client'
    const lent = await legacyAgain.request('GET', link.replace(moved.url, ''), {
      headers: { Authorization, 'Ocp-Apim-Subscription-Key': 'another' },
    })
    expect([lent.text, v2.seen.length]).toEqual(['{"from":"V2"}', 1])
  })
})
