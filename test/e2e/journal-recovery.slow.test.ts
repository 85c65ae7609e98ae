import { DatabaseSync } from 'node:sqlite'

import { describe, expect, it, vi } from 'vitest'

import { batchOf, created, flatRecords, guid, outcomesOf, postBatch } from '../support/batch-request.ts'
import { echoRecord, replyWith, startUpstream, unavailable } from '../support/scripted-upstream.ts'
import { type Adapter, onePartner, startAdapter } from '../support/start-adapter.ts'
import { journalFile, type JournalSection, rowsOf } from './support/journal-file.ts'
import { leave, payloadOf } from './support/leave.ts'

/** Tokens of one client. The claims that identify the client are equal in both tokens. */
const [older, newest] = ['1', '2'].map((jti) => {
  const claims = Buffer.from(JSON.stringify({ iss: 'sts', client_id: 'app', jti })).toString('base64url')
  return `Bearer e30.${claims}.c2ln`
}) as [string, string]
const quick = { partners: [{ id: 'default', match: { any: true }, v3: { readBackAfterMs: [10, 20] } }] }
const statesIn = (journal: JournalSection): unknown =>
  rowsOf(journal, 'SELECT state FROM journal_records ORDER BY batch, position').map(({ state }) => state)

async function logged(adapter: Adapter, msg: string, count = 1): Promise<Record<string, unknown>[]> {
  const find = () => adapter.events().filter((event) => event['msg'] === msg)
  await vi.waitFor(() => expect(find().length).toBeGreaterThanOrEqual(count), 60_000)
  return find()
}

it('the adapter reads open records of a dead instance back within 30 s after V3 can be read again, even after many crashes', async () => {
  let readable = false
  const upstream = await startUpstream((seen, response) =>
    (seen.method === 'POST' ? echoRecord : replyWith(readable ? 200 : 500, { value: [] }))(seen, response),
  )
  const journal = journalFile({ encrypted: true })
  await leave(journal, { payload: payloadOf(batchOf(flatRecords(1))), learners: [1], crashes: 8 })
  let ahead = 300_000
  const nowMs = () => Date.now() + ahead
  const adapter = await startAdapter(upstream.url, { journal, ...quick }, { nowMs })
  expect(await logged(adapter, 'records recovered')).toMatchObject([{ unknown: 1 }])
  readable = true
  ahead += 30_000
  const [, then] = await logged(adapter, 'records recovered', 2)
  expect(then).toMatchObject({ accepted: 1 })
})

describe('a batch whose client got 200 before the records were applied (batch-wire 3)', () => {
  const mismatch = batchOf(flatRecords(3), { boundary: 'batch_other' })

  it('causes retries of its records in the background until V3 accepts the records', async () => {
    let open = false
    const upstream = await startUpstream((seen, response) =>
      (open || !seen.body.includes(guid(2)) ? echoRecord : unavailable)(seen, response),
    )
    const journal = journalFile()
    let ahead = 0
    const adapter = await startAdapter(upstream.url, { journal }, { nowMs: () => Date.now() + ahead })
    const first = await postBatch(adapter, mismatch)
    expect(first.status).toBe(200)
    expect(first.text).toContain('changesetresponse_')
    open = true
    ahead = 10_000
    expect(await logged(adapter, 'records recovered')).toMatchObject([{ records: 1, accepted: 1 }])
    expect(upstream.seen.length).toBe(4)
    expect((await postBatch(adapter, mismatch)).text).toBe(first.text)
    expect(upstream.seen.length).toBe(4)
  })

  it("causes retries with the client's newest credentials if V3 has denied the credentials of the batch", async () => {
    let now = 0
    const upstream = await startUpstream((seen, response) => {
      if (now > 0 && seen.headers.authorization !== newest) return replyWith(401)(seen, response)
      return (now === 0 && seen.body.includes(guid(2)) ? unavailable : echoRecord)(seen, response)
    })
    const journal = journalFile({ encrypted: true })
    const adapter = await startAdapter(upstream.url, { journal }, { nowMs: () => Date.now() + now })
    await postBatch(adapter, mismatch, { Authorization: older })
    const other = batchOf(flatRecords(1), { batch: 'batch_later', boundary: 'batch_later' })
    now = 10_000
    await postBatch(adapter, other, { Authorization: newest })
    await logged(adapter, 'records recovered')
    now = 60_000
    const events = await logged(adapter, 'records recovered', 2)
    expect(events).toMatchObject([{ accepted: 0 }, { accepted: 1 }])
    expect(statesIn(journal)).toEqual([1, 1, 1, 1])
  })

  it('leaves a dead letter for each record that V3 refuses', async () => {
    const upstream = await startUpstream((seen, response) =>
      (seen.body.includes(guid(2)) ? replyWith(400, [{ Message: 'm', ErrorCode: 'ATT_VAL_2' }]) : echoRecord)(
        seen,
        response,
      ),
    )
    const journal = journalFile()
    const adapter = await startAdapter(upstream.url, { journal })
    await postBatch(adapter, mismatch)
    const rows = rowsOf(journal, 'SELECT position, reason FROM journal_records WHERE dead_letter = 1')
    expect(rows.map((row) => ({ ...row }))).toEqual([{ position: 1, reason: 'ATT_VAL_2' }])
  })
})

it("a read-back uses the client's newest credentials if V3 has denied the credentials of the batch", async () => {
  let lost = ''
  const upstream = await startUpstream((seen, response) => {
    if (seen.method === 'GET') {
      const page = { value: [{ ...(JSON.parse(lost) as object), ExternalID: guid(77) }] }
      const isNewest = seen.headers.authorization === newest
      return (isNewest ? replyWith(200, page) : replyWith(401))(seen, response)
    }
    if (lost !== '') return echoRecord(seen, response)
    lost = seen.body
    response.socket?.destroy()
  })
  const journal = journalFile({ encrypted: true })
  let ahead = 0
  const adapter = await startAdapter(
    upstream.url,
    { journal, ...onePartner({ v3: { readBackAfterMs: [5] } }) },
    { nowMs: () => Date.now() + ahead },
  )
  await postBatch(adapter, batchOf(flatRecords(1)), { Authorization: older })
  const other = batchOf(flatRecords(2).slice(1), { batch: 'batch_later', boundary: 'batch_later' })
  await postBatch(adapter, other, { Authorization: newest })
  ahead = 10_000
  await logged(adapter, 'records recovered')
  ahead = 60_000
  await logged(adapter, 'records recovered', 2)
  expect(statesIn(journal)).toEqual([1, 1])
})

it('the adapter posts no record that the journal cannot store', async () => {
  const upstream = await startUpstream()
  const journal = journalFile()
  const adapter = await startAdapter(upstream.url, { journal })
  const other = new DatabaseSync(journal.url.slice('sqlite:'.length))
  other.exec('BEGIN IMMEDIATE')
  const refused = await postBatch(adapter, batchOf(flatRecords(2)))
  expect(refused.status).toBe(503)
  expect(refused.headers['retry-after']).toBeDefined()
  expect(JSON.parse(refused.text)).toMatchObject({ error: { code: 'ADP_JOURNAL_UNAVAILABLE' } })
  expect((await adapter.request('GET', '/readyz')).status).toBe(503)
  expect(upstream.seen).toEqual([])
  other.exec('ROLLBACK')
  other.close()
  const taken = await postBatch(adapter, batchOf(flatRecords(2)))
  expect(outcomesOf(taken)).toEqual(created(2))
  expect((await adapter.request('GET', '/readyz')).status).toBe(200)
})
