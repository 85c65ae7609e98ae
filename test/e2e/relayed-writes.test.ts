import { describe, expect, it, vi } from 'vitest'

import { openJournal } from '../../src/journal/index.ts'
import { failuresOf, readBatchReply } from '../support/batch-request.ts'
import type { Adapter } from '../support/start-adapter.ts'
import { startRelayed, startTwoFaces, type TwoFaces } from './support/two-faces.ts'

/** The reply as far as a client compares it. */
const seen = (reply: {
  readonly status: number
  readonly headers: object
  readonly text: string
}): unknown[] => {
  const { 'content-type': type, 'odata-version': version } = reply.headers as Record<string, string>
  return [reply.status, type, version, reply.text]
}
const lostOnV2 = { kind: 'reset', apply: true, face: 'V2', method: 'POST', count: 1 }
const NO_V2 = 'http://127.0.0.1:9'

const startWithoutV2 = (faces: TwoFaces): Promise<Adapter> =>
  faces.start({}, { partners: [{ ...faces.partner, v2: { baseUrl: NO_V2 } }] })

/** V3 is known to keep the times of its clients: a mark with an earlier time than a record is another one. */
async function showTimesOfV3(faces: TwoFaces, adapter: Adapter): Promise<void> {
  await faces.setFaults({ ...lostOnV2, face: 'V3' })
  const { side } = faces.served
  faces.served.side = 'v3'
  const reply = await faces.post(adapter, faces.batch([3], 'before'))
  expect(failuresOf(readBatchReply(reply)).map(({ status }) => status)).toEqual([201])
  faces.served.side = side
}

describe.each(['identity', 'keys'] as const)('a write that V2 serves, known by its %s', (known) => {
  it('is sent to V2 alone, and its reply is given byte for byte when it comes again and V3 serves', async () => {
    const { faces, adapter } = await startRelayed({ known })
    const batch = faces.batch([1, 2], 'one')
    const first = await faces.post(adapter, batch)
    expect(first.status).toBe(200)
    faces.served.side = 'v3'
    const again = await faces.post(adapter, batch)
    expect(seen(again)).toEqual(seen(first))
    expect(await faces.effects()).toEqual(['V2 1 one', 'V2 2 one'])
    // Another instance, after a restart, knows it too.
    await adapter.app.close()
    const next = await faces.start()
    expect(seen(await faces.post(next, batch))).toEqual(seen(first))
    expect(await faces.effects()).toHaveLength(2)
  })

  it('is read back before anything is posted to V3 where its reply was lost', async () => {
    const { faces, adapter } = await startRelayed({ known })
    const batch = faces.batch([1, 2], 'one')
    await faces.setFaults(lostOnV2)
    expect((await faces.post(adapter, batch)).status).toBe(504)
    faces.served.side = 'v3'
    const again = await faces.post(adapter, batch)
    expect(failuresOf(readBatchReply(again)).map(({ status }) => status)).toEqual([201, 201])
    expect(await faces.effects()).toEqual(['V2 1 one', 'V2 2 one'])
    // It is V3's batch from now on, also when V2 serves again.
    faces.served.side = 'v2'
    const third = await faces.post(adapter, batch)
    expect(third.text).toBe(again.text)
    expect(await faces.effects()).toHaveLength(2)
  })

  it.each([2_000, -2_000])(
    'is not posted again to a V3 that keeps times where V2 has it and is %i ms ahead',
    async (aheadMs) => {
      const { faces, adapter } = await startRelayed({ known }, {}, aheadMs)
      await showTimesOfV3(faces, adapter)
      const batch = faces.batch([1, 2], 'one')
      await faces.setFaults(lostOnV2)
      expect((await faces.post(adapter, batch)).status).toBe(504)
      faces.served.side = 'v3'
      const again = await faces.post(adapter, batch)
      expect(failuresOf(readBatchReply(again)).map(({ status }) => status)).toEqual([201, 201])
      expect(await faces.effects()).toEqual(['V3 3 before', 'V2 1 one', 'V2 2 one'])
    },
  )

  it('is read back where any of the requests with it may have reached V2, not only the last', async () => {
    const { faces, adapter } = await startRelayed({ known })
    const withoutV2 = await startWithoutV2(faces)
    await showTimesOfV3(faces, adapter)
    const batch = faces.batch([1, 2], 'one')
    await faces.setFaults(lostOnV2)
    expect((await faces.post(adapter, batch)).status).toBe(504)
    expect((await faces.post(withoutV2, batch)).status).toBe(503)
    faces.served.side = 'v3'
    const again = await faces.post(adapter, batch)
    expect(failuresOf(readBatchReply(again)).map(({ status }) => status)).toEqual([201, 201])
    expect(await faces.effects()).toEqual(['V3 3 before', 'V2 1 one', 'V2 2 one'])
  })

  it('gets the reply that V2 gave, though a later request with it did not reach V2', async () => {
    const { faces, adapter } = await startRelayed({ known })
    const withoutV2 = await startWithoutV2(faces)
    const batch = faces.batch([1, 2], 'one')
    const first = await faces.post(adapter, batch)
    expect((await faces.post(withoutV2, batch)).status).toBe(503)
    faces.served.side = 'v3'
    expect(seen(await faces.post(adapter, batch))).toEqual(seen(first))
    expect(await faces.effects()).toEqual(['V2 1 one', 'V2 2 one'])
  })

  it.each([0, 2_000, -2_000])(
    'is posted for no record that a later one of the same batch hides, with V2 %i ms ahead',
    async (aheadMs) => {
      const { faces, adapter } = await startRelayed({ known }, {}, aheadMs)
      const { headers, body } = faces.batch([1, 1, 2], 'one')
      const at = body.lastIndexOf('"one"', body.lastIndexOf('"one"') - 1)
      const batch = { headers, body: `${body.slice(0, at)}"two"${body.slice(at + 5)}` }
      await faces.setFaults(lostOnV2)
      expect((await faces.post(adapter, batch)).status).toBe(504)
      faces.served.side = 'v3'
      expect(failuresOf(readBatchReply(await faces.post(adapter, batch)))).toMatchObject([
        { status: 409, codes: ['ADP_SUPERSEDED_UNKNOWN'] },
        { status: 201 },
        { status: 201 },
      ])
      expect(await faces.effects()).toEqual(['V2 1 one', 'V2 1 two', 'V2 2 one'])
    },
  )

  it('is posted to V3 where V2 never got it', async () => {
    const { faces, adapter, batch } = await startRelayed({ known }, { v2: { baseUrl: NO_V2 } })
    expect((await faces.post(adapter, batch)).status).toBe(503)
    faces.served.side = 'v3'
    expect(failuresOf(readBatchReply(await faces.post(adapter, batch)))[0]?.status).toBe(201)
    expect(await faces.effects()).toEqual(['V3 1 one'])
  })

  it('is answered by V3 where it began there, whatever serves now', async () => {
    const { faces, adapter } = await startRelayed({ known, side: 'v3' })
    const batch = faces.batch([1, 2], 'one')
    const first = await faces.post(adapter, batch)
    faces.served.side = 'v2'
    expect((await faces.post(adapter, batch)).text).toBe(first.text)
    expect(await faces.effects()).toEqual(['V3 1 one', 'V3 2 one'])
  })

  it('waits for the request to V2 that is under way on another instance, and gives its reply', async () => {
    const faces = await startTwoFaces()
    faces.served.known = known
    const [one, other] = [await faces.start(), await faces.start()]
    const batch = faces.batch([1], 'one')
    await faces.setFaults({ kind: 'latency', ms: 1_500, face: 'V2', method: 'POST', count: 1 })
    const first = faces.post(one, batch)
    const journal = await openJournal({ url: faces.journal.url })
    await vi.waitFor(async () => expect((await journal.balances())[0]?.open).toBeGreaterThan(0), 60_000)
    faces.served.side = 'v3'
    const again = await faces.post(other, batch)
    expect(seen(again)).toEqual(seen(await first))
    expect(await faces.effects()).toEqual(['V2 1 one'])
    expect(await journal.unsettled()).toEqual(new Map())
    await journal.close()
  })

  it('gives its reply to no other token than one that may read its marks', async () => {
    const { faces, adapter, batch } = await startRelayed({ known })
    await faces.post(adapter, batch)
    faces.served.side = 'v3'
    const { status } = await adapter.request('POST', '/x/V2/Attendance/$batch', {
      headers: { ...batch.headers, 'Ocp-Apim-Subscription-Key': 'sandbox', Authorization: 'Bearer wrong' },
      body: batch.body,
    })
    expect([401, 403]).toContain(status)
    expect(await faces.effects()).toHaveLength(1)
  })
})
