import { describe, expect, it, vi } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import { type Journal, openJournal } from '../../src/journal/index.ts'
import { startRelayed, startTwoFaces, type TwoFaces } from './support/two-faces.ts'
import { statusesOf } from '../support/batch-request.ts'

const onV2 = { face: 'V2', method: 'POST', count: 1 }
const open = (faces: TwoFaces): Promise<Journal> => openJournal({ url: faces.journal.url })
describe('a write that V2 serves', () => {
  it('is not posted to V3 on a resend if the lease of the instance may have ended', async () => {
    const faces = await startTwoFaces()
    await faces.setFaults({ ...onV2, kind: 'reset', apply: false })
    const batch = faces.batch([1], 'one')
    const kept = await open(faces)
    const adapter = await faces.start({
      openJournal: () =>
        Promise.resolve({
          ...kept,
          begin: async (given) => {
            const begun = await kept.begin(given)
            faces.served.isCurrent = begun.kind === 'new'
            return begun
          },
        }),
    })
    expect((await faces.post(adapter, batch)).status).toBe(504)
    faces.served.side = 'v3'
    const again = await faces.post(adapter, batch)
    expect([again.status, again.text]).toEqual([503, expect.stringContaining('ADP_STAGE_UNKNOWN')])
    expect(await faces.effects()).toEqual([])
  })

  it('is posted to V3 on a resend if V2 rejected the whole write', async () => {
    const { faces, adapter, batch } = await startRelayed()
    await faces.setFaults({ ...onV2, kind: 'status', status: 429 })
    expect((await faces.post(adapter, batch)).status).toBe(429)
    faces.served.side = 'v3'
    expect(statusesOf(await faces.post(adapter, batch))).toEqual([201])
    expect(await faces.effects()).toEqual(['V3 1 one'])
  })

  it("is reported as superseded on a resend to V3 if V2's reply was lost and a newer mark was written since", async () => {
    const { faces, adapter, batch } = await startRelayed({ stage: 'shadow', known: 'identity' })
    await faces.setFaults({ ...onV2, kind: 'reset', apply: true })
    expect((await faces.post(adapter, batch)).status).toBe(504)
    Object.assign(faces.served, { stage: 'canary', known: 'keys' })
    await faces.setFaults({ ...onV2, kind: 'status', status: 429 })
    expect((await faces.post(adapter, batch)).status).toBe(429)
    expect(statusesOf(await faces.post(adapter, faces.batch([1], 'two')))).toEqual([201])
    faces.served.side = 'v3'
    const again = await faces.post(adapter, batch)
    expect([statusesOf(again), again.text]).toEqual([[409], expect.stringContaining('ADP_SUPERSEDED')])
    expect(await faces.effects()).toEqual(['V2 1 one', 'V2 1 two'])
  })

  it("gets V2's stored single 200 on a resend to V3 if its ids differ, and its records stay unknown", async () => {
    const { faces, adapter } = await startRelayed()
    const { headers, body } = faces.batch([1], 'one')
    const batch = { headers: { 'Content-Type': 'multipart/mixed; boundary=another' }, body }
    expect(headers).not.toEqual(batch.headers)
    const first = await faces.post(adapter, batch)
    expect(first.status).toBe(200)
    faces.served.side = 'v3'
    const again = await faces.post(adapter, batch)
    expect([again.status, again.text]).toEqual([first.status, first.text])
    const journal = await open(faces)
    expect(await journal.balances()).toMatchObject([{ received: 1, unknown: 1 }])
    expect(await journal.due(Date.now() + 60_000, 10)).toEqual([])
    await journal.close()
  })

  it('is forwarded unchanged, and stays out of the journal, if the adapter cannot decode the body', async () => {
    const { faces, adapter } = await startRelayed()
    const reply = await faces.post(adapter, { headers: { 'Content-Type': 'text/plain' }, body: 'no batch' })
    expect(reply.status).toBeGreaterThanOrEqual(400)
    expect(reply.text).not.toContain('ADP_')
    const journal = await open(faces)
    expect(await journal.balances()).toEqual([])
    await journal.close()
    expect((await adapter.request('GET', '/metrics')).text).not.toMatch(
      /stage_unrecorded_total\{[^}]*\} [1-9]/,
    )
  })

  it('is forwarded before the journal has stored it if the journal is slow, and its resend is recognised later', async () => {
    const faces = await startTwoFaces()
    Object.assign(faces.served, { known: 'identity', stage: 'shadow' })
    let release = (): void => undefined
    const held = new Promise<void>((resolve) => (release = resolve))
    const kept = await open(faces)
    const adapter = await faces.start({
      openJournal: () =>
        Promise.resolve({
          ...kept,
          begin: async (batch) => {
            await held
            return kept.begin(batch)
          },
        }),
    })
    const batch = faces.batch([1], 'one')
    const first = await faces.post(adapter, batch)
    expect(statusesOf(first)).toEqual([201])
    expect(adapter.events().filter(({ msg }) => msg === 'relayed unrecorded')).toHaveLength(1)
    release()
    await vi.waitFor(async () => expect((await kept.balances())[0]?.confirmed).toBe(1), 60_000)
    faces.served.side = 'v3'
    expect((await faces.post(adapter, batch)).text).toBe(first.text)
    expect(await faces.effects()).toEqual(['V2 1 one'])
  })

  it.each([
    ['canary', 503, []],
    ['legacy', 200, ['V2 1 one']],
  ] as const)(
    'gets the status $1 at stage $0 if the journal is unreachable and the adapter recognises resends by keys',
    async (stage, status, effects) => {
      const faces = await startTwoFaces()
      Object.assign(faces.served, { known: 'keys', stage })
      const kept = await open(faces)
      const adapter = await faces.start({
        openJournal: () =>
          Promise.resolve({
            ...kept,
            begin: () => Promise.reject(new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'away')),
          }),
      })
      expect((await faces.post(adapter, faces.batch([1], 'one'))).status).toBe(status)
      expect(await faces.effects()).toEqual(effects)
    },
  )

  it('is not sent if the instance has lost the lease under which the write began, even at shadow', async () => {
    const faces = await startTwoFaces()
    Object.assign(faces.served, { known: 'identity', stage: 'shadow' })
    const kept = await open(faces)
    let isLost = false
    const openLosing = (): Promise<Journal> =>
      Promise.resolve({
        ...kept,
        begin: (batch) => kept.begin(batch).finally(() => (isLost = true)),
        lease: () => (isLost ? undefined : kept.lease()),
      })
    const batch = faces.batch([1], 'one')
    const refused = await faces.post(await faces.start({ openJournal: openLosing }), batch)
    expect(refused.status).toBe(503)
    expect(refused.text).toContain('was not sent')
    isLost = false
    expect(statusesOf(await faces.post(await faces.start(), batch))).toEqual([201])
    expect(await faces.effects()).toEqual(['V2 1 one'])
  })

  it('is not sent to V2 if the lease of the instance may have ended', async () => {
    const { faces, adapter, batch } = await startRelayed({ isCurrent: false })
    expect((await faces.post(adapter, batch)).status).toBe(503)
    Object.assign(faces.served, { isCurrent: true, side: 'v3' })
    expect(statusesOf(await faces.post(adapter, batch))).toEqual([201])
    expect(await faces.effects()).toEqual(['V3 1 one'])
  })
})
