import { describe, expect, it } from 'vitest'

import { anyText, fixed, sandboxHeaders, startSandbox } from '../sandbox/start-sandbox.ts'
import { flatRecord, guid } from '../support/batch-request.ts'
import { echoRecord } from '../support/scripted-upstream.ts'
import { onePartner, startAdapter, startWithV3 } from '../support/start-adapter.ts'

const RECORDS = '/sp-api/V2/Attendance/AttendanceRecords'
const enveloping = onePartner({ quirks: { dataEnvelope: true } })

/** Starts an adapter without the quirk and one with the quirk, in front of one sandbox. `read` sends a read through both, in this order. */
async function startBoth() {
  const sandbox = await startSandbox()
  const [plain, quirky] = [await startAdapter(sandbox.url), await startAdapter(sandbox.url, enveloping)]
  const read = async (path: string, accept = 'application/json') => {
    const asked = { headers: { ...sandboxHeaders, Accept: accept } }
    const replies = [await plain.request('GET', path, asked), await quirky.request('GET', path, asked)]
    return replies.map(({ status, text }) => ({
      status,
      // Removes the address of the adapter, which differs in links.
      text: text.replaceAll(plain.url, '').replaceAll(quirky.url, ''),
    }))
  }
  return { quirky, read }
}

describe('the adapter with the quirk dataEnvelope', () => {
  it('wraps the record of a single POST in d, and leaves errors unchanged', async () => {
    const { adapter } = await startWithV3(echoRecord, enveloping)
    const reply = await adapter.request('POST', RECORDS, { body: JSON.stringify(flatRecord(1)) })
    expect([reply.status, reply.headers['content-type']]).toEqual([
      201,
      'application/json; odata.metadata=minimal',
    ])
    expect(JSON.parse(reply.text)).toMatchObject({
      d: { '@odata.context': anyText, Learner: guid(1), AttendanceHistorys: [] },
    })
    const failed = await adapter.request('POST', RECORDS, { body: '{"Present":1}' })
    expect([failed.status, JSON.parse(failed.text)]).toMatchObject([
      400,
      expect.arrayContaining([expect.objectContaining({ ErrorCode: 'ADP_FIELD' })]),
    ])
  })

  it.each([
    ['a record', ''],
    ['a record with chosen fields', '?$select=Learner,Comment'],
  ])('wraps %s in d when the record is read by its id', async (_name, query) => {
    const { read } = await startBoth()
    const filter = `$filter=Learner eq ${fixed.learner} and AttendableEvent eq ${fixed.morning}&$select=ExternalID`
    const [found] = await read(`${RECORDS}?${filter.replaceAll(' ', '%20')}`)
    const { value } = JSON.parse(found?.text ?? '') as { value: { ExternalID: string }[] }
    const [plain, quirky] = await read(`${RECORDS}(${value[0]?.ExternalID})${query}`)
    expect(quirky).toEqual({ status: 200, text: `{"d":${plain?.text}}` })
    const [, missing] = await read(`${RECORDS}(${guid(99)})`)
    expect([missing?.status, JSON.parse(missing?.text ?? '')]).toMatchObject([404, { error: {} }])
  })

  it('writes pages with the member names of OData V2, and with next links that lead to all pages', async () => {
    const { read, quirky } = await startBoth()
    const query = `$filter=Learner eq ${fixed.learner}&$select=ExternalID&$top=3&$count=true`
    const accept = 'application/json;odata.metadata=none'
    const [plain, first] = await read(`${RECORDS}?${query.replaceAll(' ', '%20')}`, accept)
    const wanted = JSON.parse(plain?.text ?? '') as { '@odata.count': number; value: object[] }
    expect(JSON.parse(first?.text ?? '')).toEqual({
      d: { __count: String(wanted['@odata.count']), results: wanted.value },
    })
    expect(wanted.value).toHaveLength(3)
    const small = { ...sandboxHeaders, Prefer: 'odata.maxpagesize=2' }
    const ids: object[] = []
    let path: string | undefined = `${RECORDS}?${query.replaceAll(' ', '%20')}`
    for (let pages = 0; path !== undefined && pages < 3; pages += 1) {
      const { text } = await quirky.request('GET', path, { headers: small })
      const { d } = JSON.parse(text) as { d: { results: object[]; __next?: string } }
      ids.push(...d.results)
      path = d.__next?.replace(quirky.url, '')
    }
    expect([ids, path]).toEqual([wanted.value, undefined])
  })
})
