import { describe, expect, it } from 'vitest'

import { startRelayed } from './support/two-faces.ts'
import { outcomesOf, statusesOf } from '../support/batch-request.ts'

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

describe.each(['identity', 'keys'] as const)(
  'a write that V2 serves and that the adapter recognises by its %s',
  (known) => {
    it("is sent only to V2, and its resend to V3 gets V2's reply byte for byte", async () => {
      const { faces, adapter } = await startRelayed({ known })
      const batch = faces.batch([1, 2], 'one')
      const first = await faces.post(adapter, batch)
      expect(first.status).toBe(200)
      faces.served.side = 'v3'
      const again = await faces.post(adapter, batch)
      expect(seen(again)).toEqual(seen(first))
      expect(await faces.effects()).toEqual(['V2 1 one', 'V2 2 one'])
      // An instance that starts later also returns the stored reply.
      await adapter.app.close()
      const next = await faces.start()
      expect(seen(await faces.post(next, batch))).toEqual(seen(first))
      expect(await faces.effects()).toHaveLength(2)
    })

    it('is read back before its resend is posted to V3 if the reply of V2 was lost', async () => {
      const { faces, adapter } = await startRelayed({ known })
      const batch = faces.batch([1, 2], 'one')
      await faces.setFaults(lostOnV2)
      expect((await faces.post(adapter, batch)).status).toBe(504)
      faces.served.side = 'v3'
      const again = await faces.post(adapter, batch)
      expect(statusesOf(again)).toEqual([201, 201])
      expect(await faces.effects()).toEqual(['V2 1 one', 'V2 2 one'])
      // V3 has answered the batch, so a resend gets this reply even when V2 serves again.
      faces.served.side = 'v2'
      const third = await faces.post(adapter, batch)
      expect(third.text).toBe(again.text)
      expect(await faces.effects()).toHaveLength(2)
    })

    it('does not post to V3, on a resend, a record that a later record of the batch replaces', async () => {
      const { faces, adapter } = await startRelayed({ known })
      const { headers, body } = faces.batch([1, 1, 2], 'one')
      const at = body.lastIndexOf('"one"', body.lastIndexOf('"one"') - 1)
      const batch = { headers, body: `${body.slice(0, at)}"two"${body.slice(at + 5)}` }
      await faces.setFaults(lostOnV2)
      expect((await faces.post(adapter, batch)).status).toBe(504)
      faces.served.side = 'v3'
      expect(outcomesOf(await faces.post(adapter, batch))).toMatchObject([
        { status: 409, codes: ['ADP_SUPERSEDED_UNKNOWN'] },
        { status: 201 },
        { status: 201 },
      ])
      expect(await faces.effects()).toEqual(['V2 1 one', 'V2 1 two', 'V2 2 one'])
    })

    it('is posted to V3 on a resend if V2 never received the write', async () => {
      const { faces, adapter, batch } = await startRelayed({ known }, { v2: { baseUrl: NO_V2 } })
      expect((await faces.post(adapter, batch)).status).toBe(503)
      faces.served.side = 'v3'
      expect(outcomesOf(await faces.post(adapter, batch))[0]?.status).toBe(201)
      expect(await faces.effects()).toEqual(['V3 1 one'])
    })

    it('returns its stored reply, on a resend, only for tokens that may read its marks', async () => {
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
  },
)
