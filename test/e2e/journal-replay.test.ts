import { describe, expect, it } from 'vitest'

import {
  batchOf,
  batchPath,
  batchText,
  created,
  failuresOf,
  flatRecord,
  flatRecords,
  guid,
  outcomesOf,
  postBatch,
  readBatchReply,
  statusesOf,
} from '../support/batch-request.ts'
import { RawClient } from '../support/raw-client.ts'
import {
  type Answer,
  echoRecord,
  holdAnswers,
  postsOf,
  replyWith,
  type SeenRequest,
  startUpstream,
  unavailable,
} from '../support/scripted-upstream.ts'
import { onePartner, startAdapter, startWithV3 } from '../support/start-adapter.ts'
import { journalFile } from './support/journal-file.ts'

const batch = batchOf(flatRecords(3))
const learnersOf = (seen: readonly SeenRequest[]): number[] =>
  postsOf(seen).map(({ body }) =>
    Number((JSON.parse(body) as { Attendee: { ExternalID: string } }).Attendee.ExternalID.slice(-6)),
  )

describe('a resend of a batch', () => {
  it('gets the stored reply byte for byte, and the adapter posts nothing', async () => {
    const upstream = await startUpstream((seen, response) =>
      seen.body.includes(guid(2))
        ? replyWith(400, { error: { code: 'Z1', message: 'm' } })(seen, response)
        : echoRecord(seen, response),
    )
    const journal = journalFile()
    const adapter = await startAdapter(upstream.url, { journal })
    const first = await postBatch(adapter, batch)
    expect(statusesOf(first)).toEqual([201, 400, 201])
    const again = await postBatch(adapter, batch, { Authorization: 'bearer a-later-token' })
    expect([again.status, again.headers['content-type'], again.text]).toEqual([
      first.status,
      first.headers['content-type'],
      first.text,
    ])
    expect(adapter.events().at(-1)).toMatchObject({ replayed: true, records: 3, accepted: 2, refused: 1 })
    await adapter.app.close()
    const restarted = await startAdapter(upstream.url, { journal, listen: { port: 0 } })
    expect((await postBatch(restarted, batch)).text).toContain('batchresponse_')
    expect(learnersOf(upstream.seen).length).toBe(3)
  })

  it('gets the reply in the format of the first reply, even if the configured format has changed', async () => {
    const upstream = await startUpstream()
    const journal = journalFile()
    const adapter = await startAdapter(upstream.url, { journal, ...onePartner({ layout: 'flat' }) })
    const first = await postBatch(adapter, batch)
    await adapter.app.close()
    const quirks = { dataEnvelope: true, msgtypeResponse: true }
    const changed = { journal, ...onePartner({ layout: 'nested', quirks, unmappedFields: 'strict' }) }
    expect((await postBatch(await startAdapter(upstream.url, changed), batch)).text).toBe(first.text)
    expect(learnersOf(upstream.seen).length).toBe(3)
  })

  it('gets the record addresses of the first reply, whatever host and path the resend uses', async () => {
    const upstream = await startUpstream()
    const settings = { journal: journalFile(), ...onePartner({ layout: 'nested' }) }
    const adapter = await startAdapter(upstream.url, settings)
    const first = await postBatch(adapter, batch)
    const root = `${adapter.url}${batchPath.replace('$batch', 'AttendanceRecords')}`
    const addresses = [
      ...first.text.matchAll(
        /^Location: (.*)\r\nContent-Type.*\r\nContent-Length.*\r\n\r\n.*"ExternalID":"([^"]*)"/gm,
      ),
    ]
    expect(addresses.map(([, address]) => address)).toEqual(addresses.map(([, , id]) => `${root}(${id})`))
    expect(addresses).toHaveLength(3)
    expect((await postBatch(adapter, batch, { Host: 'other.example' })).text).toBe(first.text)
    await adapter.app.close()
    const restarted = await startAdapter(upstream.url, settings)
    expect((await postBatch(restarted, batch)).text).toBe(first.text)
    expect(learnersOf(upstream.seen).length).toBe(3)
  })

  it('counts as a new batch if another partner sends it, or if it is a single record without ids', async () => {
    const upstream = await startUpstream()
    const partners = ['one', 'two'].map((id) => ({ id, match: { header: { name: 'X-School', value: id } } }))
    const adapter = await startAdapter(upstream.url, { journal: journalFile(), partners })
    for (const school of ['one', 'two', 'one', 'two']) await postBatch(adapter, batch, { 'X-School': school })
    expect(upstream.seen.length).toBe(6)
    const body = JSON.stringify(flatRecord(9))
    for (let count = 0; count < 2; count += 1) {
      const headers = { 'X-School': 'one' }
      const reply = await adapter.request('POST', '/V2/Attendance/AttendanceRecords', { headers, body })
      expect(reply.status).toBe(201)
    }
    expect(upstream.seen.length).toBe(8)
  })

  it('counts as a new batch if the adapter now has another V3 service', async () => {
    const [test, live] = [await startUpstream(), await startUpstream()]
    const journal = journalFile()
    for (const { url } of [test, live]) {
      const adapter = await startAdapter(url, { journal })
      await postBatch(adapter, batch)
      await adapter.app.close()
    }
    expect([test.seen.length, live.seen.length]).toEqual([3, 3])
  })

  it('joins the first copy if it is still in progress, and receives each part of the reply as soon as it is complete', async () => {
    const { answer, release } = holdAnswers(({ body }) => body.includes(guid(2)))
    const { upstream, adapter } = await startWithV3(answer, { journal: journalFile() })
    const first = postBatch(adapter, batch)
    await upstream.arrived(3)
    const client = await RawClient.open(adapter.port, batchText(batch))
    expect(await client.until(guid(1))).toContain('batchresponse_')
    release()
    const [whole, joined] = await Promise.all([first, client.until('--\r\n\r\n0\r\n\r\n')])
    const parts = readBatchReply(whole)
    expect(failuresOf(parts)).toEqual(created(3))
    for (const { json } of parts) expect(joined).toContain(JSON.stringify(json))
    expect(upstream.seen.length).toBe(3)
  })

  it('gets the reply that the adapter completed after the client had disconnected', async () => {
    const { answer, release } = holdAnswers()
    const { upstream, adapter } = await startWithV3(answer, { journal: journalFile() })
    const client = await RawClient.open(adapter.port, batchText(batch))
    await upstream.arrived(3)
    client.socket.destroy()
    release()
    expect(outcomesOf(await postBatch(adapter, batch))).toEqual(created(3))
    expect(upstream.seen.length).toBe(3)
  })
})

describe('a resend of a batch whose records partly failed', () => {
  /** Starts a V3 service that accepts every post, except that it first gives `answers` to the posts of learner 2. */
  const serve = (...answers: Answer[]) => {
    let count = 0
    return startUpstream((seen, response) => {
      const own = seen.method === 'POST' && seen.body.includes(guid(2)) ? answers[count++] : undefined
      return (own ?? echoRecord)(seen, response)
    })
  }

  it.each([
    ['was not applied', unavailable, 503],
    ['was denied after another record was accepted', replyWith(403), 403],
  ])('posts again only the record that %s', async (_name, answer, status) => {
    const upstream = await serve(answer)
    const adapter = await startAdapter(upstream.url, { journal: journalFile() })
    const first = await postBatch(adapter, batch)
    expect(readBatchReply(first).map((part) => part.status)).toEqual([201, status, 201])
    const second = await postBatch(adapter, batch)
    expect(outcomesOf(second)).toEqual(created(3))
    expect(learnersOf(upstream.seen).sort()).toEqual([1, 2, 2, 3])
    expect((await postBatch(adapter, batch)).text).toBe(second.text)
    expect(upstream.seen.length).toBe(4)
  })

  it('reads back a record with an unknown outcome before posting it again', async () => {
    let [posted, readable] = ['', false]
    const upstream = await startUpstream((seen, response) => {
      if (seen.method === 'GET') {
        const page = { value: [{ ...(JSON.parse(posted) as object), ExternalID: guid(77) }] }
        return (readable ? replyWith(200, page) : replyWith(500))(seen, response)
      }
      if (!seen.body.includes(guid(2))) return echoRecord(seen, response)
      posted = seen.body
      response.socket?.destroy()
    })
    const adapter = await startAdapter(upstream.url, {
      journal: journalFile(),
      ...onePartner({ v3: { readBackAfterMs: [5] } }),
    })
    const first = readBatchReply(await postBatch(adapter, batch))
    expect(first.map(({ status }) => status)).toEqual([201, 504, 201])
    readable = true
    const second = readBatchReply(await postBatch(adapter, batch))
    expect(failuresOf(second)).toEqual(created(3))
    expect(second[1]?.json).toMatchObject({ ExternalID: guid(77), Learner: guid(2) })
    expect(learnersOf(upstream.seen).sort()).toEqual([1, 2, 3])
  })

  it('posts all records of the batch if V3 denied the credentials of the first copy', async () => {
    let denied = true
    const upstream = await startUpstream((seen, response) =>
      (denied ? replyWith(401, { statusCode: 401, message: 'm' }) : echoRecord)(seen, response),
    )
    const adapter = await startAdapter(upstream.url, { journal: journalFile() })
    expect((await postBatch(adapter, batch)).status).toBe(401)
    denied = false
    expect(outcomesOf(await postBatch(adapter, batch))).toEqual(created(3))
  })

  it('posts a failed record again even if the adapter has become stricter and would reject the record in a new batch', async () => {
    const upstream = await serve(unavailable)
    const journal = journalFile()
    const odd = batchOf(flatRecords(3).map((record) => ({ ...record, Colour: 'red' })))
    const adapter = await startAdapter(upstream.url, { journal, ...onePartner({}) })
    expect(statusesOf(await postBatch(adapter, odd))).toEqual([201, 503, 201])
    await adapter.app.close()
    const strict = await startAdapter(upstream.url, { journal, ...onePartner({ unmappedFields: 'strict' }) })
    expect(outcomesOf(await postBatch(strict, odd))).toEqual(created(3))
  })

  it('does not write an older mark over a newer mark', async () => {
    const upstream = await serve(unavailable)
    const adapter = await startAdapter(upstream.url, { journal: journalFile() })
    const first = await postBatch(adapter, batch)
    const newer = batchOf([flatRecord(2, { MinutesLate: 7 })], {
      batch: 'batch_newer',
      boundary: 'batch_newer',
    })
    expect(outcomesOf(await postBatch(adapter, newer))).toEqual(created(1))
    expect(outcomesOf(first)[1]).toEqual({ status: 503, codes: ['ADP_UPSTREAM_UNAVAILABLE'] })
    const again = await postBatch(adapter, batch)
    const overtaken = { status: 409, codes: ['ADP_SUPERSEDED'] }
    expect(outcomesOf(again)).toEqual([...created(1), overtaken, ...created(1)])
    expect((await postBatch(adapter, batch)).text).toBe(again.text)
    expect(learnersOf(upstream.seen).filter((learner) => learner === 2).length).toBe(2)
  })
})

it('the adapter posts the records of one learner and event in order, even if they arrive on different connections', async () => {
  const { answer, release } = holdAnswers(({ index }) => index === 0)
  const { upstream, adapter } = await startWithV3(answer, { journal: journalFile() })
  const named = (name: string, records: object[]) => batchOf(records, { batch: name, boundary: name })
  const older = postBatch(adapter, named('batch_1', [flatRecord(1, { MinutesLate: 1 })]))
  await upstream.arrived(1)
  const newer = postBatch(adapter, named('batch_2', [flatRecord(1, { MinutesLate: 2 }), flatRecord(5)]))
  await upstream.arrived(2)
  expect(learnersOf(upstream.seen)).toEqual([1, 5])
  release()
  await Promise.all([older, newer])
  expect(upstream.seen.map(({ body }) => /"MinutesLate":(\w+)/.exec(body)?.[1])).toEqual(['1', 'null', '2'])
})

it.each([401, 403])(
  'the adapter posts the records of a mismatch if V3 denied the first copy with %i and the client resends the batch with other credentials (batch-wire 3)',
  async (status) => {
    const upstream = await startUpstream((seen, response) =>
      (seen.headers.authorization === 'bearer renewed' ? echoRecord : replyWith(status))(seen, response),
    )
    const adapter = await startAdapter(upstream.url, { journal: journalFile() })
    const mismatch = batchOf(flatRecords(3), { boundary: 'batch_other' })
    expect((await postBatch(adapter, mismatch)).status).toBe(status)
    const posted = upstream.seen.length
    const renewed = { Authorization: 'bearer renewed' }
    const second = await postBatch(adapter, mismatch, renewed)
    expect([second.status, upstream.seen.length - posted]).toEqual([200, 3])
    expect((await postBatch(adapter, mismatch, renewed)).text).toBe(second.text)
    expect(upstream.seen.length - posted).toBe(3)
  },
)
