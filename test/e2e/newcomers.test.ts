import { describe, expect, it } from 'vitest'

import {
  batchOf,
  batchPath,
  created,
  flatRecord,
  flatRecords,
  outcomesOf,
  statusesOf,
} from '../support/batch-request.ts'
import { type Answer, echoRecord, replyWith, startUpstream } from '../support/scripted-upstream.ts'
import { type Adapter, onePartner, type Reply, startAdapter, startWithV3 } from '../support/start-adapter.ts'
import { journalFile, type JournalSection, rowsOf } from './support/journal-file.ts'

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
/** Returns a token with this signature. All these tokens have equal claims, so the adapter takes their senders for one client. */
const tokenOf = (signature: string): string =>
  `Bearer ${encode({ alg: 'RS256' })}.${encode({ iss: 'https://sts.test', client_id: 'app' })}.${signature}`
const [genuine, forged] = [tokenOf('Z2Vu'), tokenOf('Zm9y')]
const denied = replyWith(401, { statusCode: 401, message: 'Wrong token.' })

const post = (
  adapter: Adapter,
  { headers, body }: ReturnType<typeof batchOf>,
  Authorization = genuine,
): Promise<Reply> => adapter.request('POST', batchPath, { headers: { ...headers, Authorization }, body })

const verifying =
  (forgedAnswer: Answer, answer: Answer = echoRecord): Answer =>
  (seen, response) =>
    (seen.headers.authorization === forged ? forgedAnswer : answer)(seen, response)

const tables = ['batches', 'records', 'payloads', 'credentials', 'answers']
const rowsIn = (journal: JournalSection): unknown =>
  tables.map((table) => rowsOf(journal, `SELECT count(*) AS n FROM journal_${table}`)[0]?.['n'])

describe('a request whose credentials V3 or V2 denies', () => {
  it.each([401, 403])('leaves no row in the journal when V3 answers %i', async (status) => {
    const upstream = await startUpstream(replyWith(status, { statusCode: status, message: 'No.' }))
    const journal = journalFile({ encrypted: true })
    const adapter = await startAdapter(upstream.url, { journal })
    for (let count = 0; count < 3; count += 1)
      expect((await post(adapter, batchOf([...flatRecords(20), '{"a"']))).status).toBe(status)
    expect(rowsIn(journal)).toEqual([0, 0, 0, 0, 0])
    expect((await adapter.request('GET', '/metrics')).text).toMatch(
      /journal_records\{[^}]*state="refused"[^}]*\} 63\n/,
    )
  })

  it.each([401, 403])('leaves no row in the journal when V2 answers %i', async (status) => {
    const upstream = await startUpstream(replyWith(status, { statusCode: status, message: 'No.' }))
    const journal = journalFile()
    const v2 = { baseUrl: upstream.url }
    const adapter = await startAdapter(upstream.url, { ...onePartner({ stage: 'shadow' }), journal, v2 })
    expect((await post(adapter, batchOf(flatRecords(20)))).status).toBe(status)
    await expect.poll(() => rowsIn(journal)).toEqual([0, 0, 0, 0, 0])
  })

  it('stores no rate slots for an invented subscription key, unlike a request with an accepted key', async () => {
    const upstream = await startUpstream(verifying(denied))
    const journal = journalFile()
    const limited = onePartner({ v3: { callsPerSecond: 5 } })
    const adapter = await startAdapter(upstream.url, { ...limited, journal })
    const names = (): number => rowsOf(journal, 'SELECT name FROM journal_rate_slots').length
    for (let count = 0; count < 20; count += 1) {
      const made = { 'Ocp-Apim-Subscription-Key': `made-up-${count}`, Authorization: forged }
      const { headers, body } = batchOf(flatRecords(1))
      const path =
        '/V2/Attendance/AttendanceRecords?$filter=Learner%20eq%2000000000-0000-4000-8000-000000000001'
      const write = await adapter.request('POST', batchPath, { headers: { ...headers, ...made }, body })
      expect(write.status).toBe(401)
      expect((await adapter.request('GET', path, { headers: made })).status).not.toBe(200)
      expect((await adapter.request('GET', '/V1/LookupItems', { headers: made })).status).not.toBe(200)
    }
    expect(names()).toBe(0)
    for (let count = 0; count < 2; count += 1)
      expect((await post(adapter, batchOf([flatRecord(count)], { batch: `b${count}` }))).status).toBe(200)
    expect(names()).toBe(1)
  })

  it('does not replace the stored reply of another client, even if it copies the claims and batch ids of that client', async () => {
    const { upstream, adapter } = await startWithV3(verifying(denied), { journal: journalFile() })
    const first = batchOf([flatRecord(1, { Comment: 'first' })], { batch: 'same' })
    const reply = await post(adapter, first)
    const other = batchOf([flatRecord(1, { Comment: 'other' })], { batch: 'same' })
    expect((await post(adapter, other, forged)).status).toBe(401)
    const posted = (): number => upstream.seen.filter(({ body }) => body.includes('first')).length
    expect((await post(adapter, first)).text).toBe(reply.text)
    expect(posted()).toBe(1)
    // The accepted client can post other bytes with the same ids, and then the first bytes again, which count as a new batch.
    expect(outcomesOf(await post(adapter, other))).toEqual(created(1))
    expect(outcomesOf(await post(adapter, first))).toEqual(created(1))
    expect(posted()).toBe(2)
  })

  it('counts as a new batch when the client resends the batch with accepted credentials', async () => {
    const { adapter } = await startWithV3(verifying(denied), { journal: journalFile() })
    const batch = batchOf(flatRecords(3))
    expect((await post(adapter, batch, forged)).status).toBe(401)
    expect(outcomesOf(await post(adapter, batch))).toEqual(created(3))
  })

  it('does not change the reply to an accepted client that sends the same batch at the same time', async () => {
    const upstream = await startUpstream(
      verifying((seen, response) => void setTimeout(() => void denied(seen, response), 500)),
    )
    const adapter = await startAdapter(upstream.url, { journal: journalFile() })
    expect((await post(adapter, batchOf(flatRecords(1)))).status).toBe(200)
    const batch = batchOf(flatRecords(3), { batch: 'same' })
    const wrong = post(adapter, batch, forged)
    await upstream.arrived(2)
    const right = await post(adapter, batch)
    expect((await wrong).status).toBe(401)
    expect(outcomesOf(right)).toEqual(created(3))
  })
})

describe('a batch of a client whose credentials V3 has not accepted', () => {
  const partner = onePartner({ v3: { budgetMs: 20_000 } })
  const mark = (Comment: string) => batchOf([flatRecord(1, { Comment })])
  const repeated = Array.from({ length: 50 }, (_, index) => flatRecord(1, { Comment: `forged ${index}` }))

  it('delays a newer record of the same learner and event by fewer than twelve calls while V3 throttles the batch', async () => {
    const throttled: Answer = (seen, response) => {
      response.setHeader('Retry-After', '1')
      return replyWith(429, '')(seen, response)
    }
    const upstream = await startUpstream(verifying(throttled))
    const adapter = await startAdapter(upstream.url, { ...partner, journal: journalFile() })
    expect((await post(adapter, batchOf([flatRecord(2)]))).status).toBe(200)
    const older = [post(adapter, batchOf(repeated), forged), post(adapter, batchOf(repeated), forged)]
    await upstream.arrived(2)
    expect(outcomesOf(await post(adapter, mark('newer')))).toEqual(created(1))
    const before = upstream.seen.findIndex(({ body }) => body.includes('newer'))
    expect(before).toBeLessThan(12)
    // No older record was applied. Its status is 409 if the newer record was confirmed before the outcome of the older record was stored.
    for (const reply of await Promise.all(older))
      for (const status of new Set(statusesOf(reply))) expect([409, 503]).toContain(status)
    expect(upstream.seen.length).toBe(before + 1)
  })

  it('delays, once its record was posted, a newer record of the same learner and event until V3 has answered', async () => {
    const upstream = await startUpstream(
      verifying((seen, response) => void setTimeout(() => void echoRecord(seen, response), 5_000)),
    )
    const adapter = await startAdapter(upstream.url, { ...partner, journal: journalFile() })
    expect((await post(adapter, batchOf([flatRecord(2)]))).status).toBe(200)
    const older = post(adapter, mark('older'), forged)
    await upstream.arrived(2)
    const newer = post(adapter, mark('newer'))
    const early = await Promise.race([newer, older.then(() => 'waits')])
    expect(early).toBe('waits')
    for (const reply of [await older, await newer]) expect(outcomesOf(reply)).toEqual(created(1))
    expect(upstream.seen.map(({ body }) => /older|newer/.exec(body)?.[0])).toEqual([
      undefined,
      'older',
      'newer',
    ])
  })
})
