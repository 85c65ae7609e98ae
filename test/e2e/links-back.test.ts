import { describe, expect, it } from 'vitest'

import { type Answer, replyWith, startUpstream, type Upstream } from '../support/scripted-upstream.ts'
import { startAdapter } from '../support/start-adapter.ts'

const json = { 'Content-Type': 'application/json' }
const path = '/live/V2/Attendance/AttendanceRecords'
const fields = ['location', 'content-location', 'odata-entityid'] as const

/** Builds an answer with the same link in the three header fields that contain an address. `link` gets the base address of the service. */
const linking =
  (status: number, link: (base: string) => string): Answer =>
  (seen, response) => {
    const value = link(`http://${seen.headers.host ?? ''}/base`)
    const headers = Object.fromEntries(fields.map((name) => [name, value]))
    return replyWith(status, {}, { ...json, ...headers })(seen, response)
  }

describe.each([
  ['V3', 'GET', '/V3/LearnerIdentifiers'],
  ['V3', 'POST', '/Attendance/V3/AttendanceRecords'],
  ['V2', 'GET', path],
  ['V2', 'POST', path],
] as const)('an address header in a reply of %s to %s', (side, method, target) => {
  const start = async (answer: Answer, settings: object = {}): Promise<[Upstream, string, string[]]> => {
    const upstream = await startUpstream(answer)
    const partners = [{ id: 'acme', match: { any: true }, stage: side === 'V2' ? 'legacy' : 'v3' }]
    const v2 = { baseUrl: `${upstream.url}/base` }
    const adapter = await startAdapter(`${upstream.url}/base`, { v2, partners, ...settings })
    const reply = await adapter.request(method, target, method === 'POST' ? { body: '{}' } : {})
    return [upstream, adapter.url, fields.map((name) => String(reply.headers[name]))]
  }

  it.each([
    ['an absolute address', (base: string) => `${base}/V3/Sets(1)?x#y`],
    ['a path', () => '/base/V3/Sets(1)?x#y'],
  ])('leads back to the adapter when it contains %s', async (_what, link) => {
    for (const status of [201, 307]) {
      const [, url, values] = await start(linking(status, link))
      expect(values).toEqual(fields.map(() => `${url}/V3/Sets(1)?x#y`))
    }
  })

  it('stays unchanged if it points to another server, or if links are not rewritten', async () => {
    const [, , values] = await start(linking(200, () => 'https://other.test/base/V3/Sets(1)'))
    expect(values).toEqual(fields.map(() => 'https://other.test/base/V3/Sets(1)'))
    const off = { passThrough: { rewriteLinks: false } }
    const [upstream, , kept] = await start(
      linking(200, (base) => `${base}/V3/Sets(1)`),
      off,
    )
    expect(kept).toEqual(fields.map(() => `${upstream.url}/base/V3/Sets(1)`))
  })
})

describe('a next link', () => {
  it.each([
    ['@odata.nextLink', 'http://inner.test:5000/base/V3/LearnerIdentifiers?$skip=2', '/V3/LearnerIdentifiers?$skip=2'],
    ['@nextLink', 'https://inner.test/v3/learneridentifiers?$skip=2', '/V3/LearnerIdentifiers?$skip=2'],
    ['odata.nextLink', 'https://inner.test/V3/LearnerPersonals?$skip=2', undefined],
  ])('of V3 leads back to the adapter only if its path is the path of the read: %s with %s', async (name, link, back) => {
    const upstream = await startUpstream(replyWith(200, { value: [], [name]: link }, json))
    const adapter = await startAdapter(`${upstream.url}/base`, {})
    const { text } = await adapter.request('GET', '/V3/LearnerIdentifiers?$top=2')
    expect(JSON.parse(text)).toEqual({ value: [], [name]: back === undefined ? link : adapter.url + back })
  })

  it('of V2 in the OData V2 envelope leads back to the adapter with the marker /~v2', async () => {
    const answer: Answer = (seen, response) =>
      replyWith(200, { d: { results: [], __next: `http://${seen.headers.host ?? ''}/base${path}?$skiptoken=2` } }, json)(seen, response)
    const v2 = await startUpstream(answer)
    const partners = [{ id: 'acme', match: { any: true }, stage: 'legacy' }]
    const adapter = await startAdapter(v2.url, { v2: { baseUrl: `${v2.url}/base` }, partners })
    const { text } = await adapter.request('GET', `${path}?$filter=x`)
    expect(JSON.parse(text)).toEqual({ d: { results: [], __next: `${adapter.url}/~v2${path}?$skiptoken=2` } })
  })
}) // prettier-ignore

describe("the adapter's own address in links", () => {
  const next = (seen: { readonly headers: { readonly host?: string | undefined } }): object => ({
    ...{ value: [], '@odata.context': `http://${seen.headers.host ?? ''}/V3/$metadata#LearnerIdentifiers` },
    '@odata.nextLink': `http://${seen.headers.host ?? ''}/V3/LearnerIdentifiers?$skip=2`,
  })
  const answer: Answer = (seen, response) => replyWith(200, next(seen), json)(seen, response)

  it.each<[what: string, listen: object, headers: Record<string, string>, root: string | undefined]>([
    ['is listen.publicUrl if it is set', { publicUrl: 'https://marks.example/prefix/' }, {}, 'https://marks.example/prefix'],
    ['ignores X-Forwarded-Prefix by default', {}, { 'X-Forwarded-Prefix': '/mine' }, undefined],
    ['has the X-Forwarded-Prefix of a trusted proxy', { trustedProxies: ['127.0.0.1'] }, { 'X-Forwarded-Prefix': '/mine', 'X-Forwarded-Proto': 'https' }, 'https://HOST/mine'],
    ['is listen.publicUrl even behind a trusted proxy', { publicUrl: new URL('http://marks.example').href, trustedProxies: ['127.0.0.1'] }, { 'X-Forwarded-Prefix': '/mine' }, 'http://marks.example'],
  ])('%s', async (_what, listen, headers, root) => {
    const upstream = await startUpstream(answer)
    const adapter = await startAdapter(upstream.url, { listen: { port: 0, ...listen } })
    const own = (root ?? adapter.url).replace('HOST', `127.0.0.1:${adapter.port}`)
    const passed = await adapter.request('GET', '/V3/LearnerIdentifiers', { headers })
    expect(JSON.parse(passed.text)).toEqual({
      ...{ value: [], '@odata.context': `${own}/V3/$metadata#LearnerIdentifiers` },
      '@odata.nextLink': `${own}/V3/LearnerIdentifiers?$skip=2`,
    })
    expect(upstream.seen[0]?.headers['x-forwarded-prefix']).toBeUndefined()
    const document = await adapter.request('GET', '/live/V2/Attendance', { headers })
    expect(JSON.parse(document.text)).toMatchObject({ '@odata.context': `${own}/live/V2/Attendance/$metadata` })
  })
}) // prettier-ignore
