import { describe, expect, it, vi } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import { type Journal, openJournal } from '../../src/journal/index.ts'
import { failuresOf, readBatchReply } from '../support/batch-request.ts'
import { startRelayed, startTwoFaces, type TwoFaces } from './support/two-faces.ts'

const statusesOf = (reply: Parameters<typeof readBatchReply>[0]): number[] =>
  failuresOf(readBatchReply(reply)).map(({ status }) => status)
const onV2 = { face: 'V2', method: 'POST', count: 1 }
const open = (faces: TwoFaces): Promise<Journal> => openJournal({ url: faces.journal.url })
async function openRecords(faces: TwoFaces): Promise<number | undefined> {
  const journal = await open(faces)
  const [balance] = await journal.balances()
  await journal.close()
  return balance?.open
}

describe('a write for V2', () => {
  it.each(['identity', 'keys'] as const)(
    'is read back on V3 where its reply broke off, known by its %s',
    async (known) => {
      const { faces, adapter, batch } = await startRelayed({ known })
      await faces.setFaults({ ...onV2, kind: 'truncate', bytes: 40 })
      await expect(faces.post(adapter, batch)).rejects.toThrow()
      await faces.setFaults([])
      faces.served.side = 'v3'
      expect(statusesOf(await faces.post(adapter, batch))).toEqual([201])
      expect(await faces.effects()).toEqual(['V2 1 one'])
    },
  )

  it('that V2 refused as a whole is new to V3', async () => {
    const { faces, adapter, batch } = await startRelayed()
    await faces.setFaults({ ...onV2, kind: 'status', status: 429 })
    expect((await faces.post(adapter, batch)).status).toBe(429)
    faces.served.side = 'v3'
    expect(statusesOf(await faces.post(adapter, batch))).toEqual([201])
    expect(await faces.effects()).toEqual(['V3 1 one'])
  })

  it('that V2 did not take never overwrites a newer one of V3', async () => {
    const { faces, adapter } = await startRelayed()
    const batch = faces.batch([1, 2], 'one')
    await faces.setFaults({ ...onV2, kind: 'status', status: 429 })
    expect((await faces.post(adapter, batch)).status).toBe(429)
    faces.served.side = 'v3'
    expect(statusesOf(await faces.post(adapter, faces.batch([1], 'two')))).toEqual([201])
    for (let time = 0; time < 2; time += 1)
      expect(statusesOf(await faces.post(adapter, batch))).toEqual([409, 201])
    expect(await faces.effects()).toEqual(['V3 1 two', 'V3 2 one'])
  })

  it.each([['keys'], ['identity']] as const)(
    'that V2 did not take waits for a newer one on its way to V3 and does not overwrite it, known by its %s',
    async (known) => {
      const { faces, adapter } = await startRelayed({ known })
      const batch = faces.batch([1, 2], 'one')
      await faces.setFaults({ ...onV2, kind: 'status', status: 429 })
      expect((await faces.post(adapter, batch)).status).toBe(429)
      faces.served.side = 'v3'
      await faces.setFaults({ face: 'V3', method: 'POST', count: 1, kind: 'latency', ms: 2_500 })
      const newer = faces.post(adapter, faces.batch([1], 'two'))
      await vi.waitFor(async () => expect(await openRecords(faces)).toBe(1), {
        timeout: 60_000,
        interval: 20,
      })
      expect(statusesOf(await faces.post(adapter, batch))).toEqual([409, 201])
      expect(statusesOf(await newer)).toEqual([201])
      expect(new Set(await faces.effects())).toEqual(new Set(['V3 1 two', 'V3 2 one']))
    },
  )

  it('whose ids differ gets the single 200 of V2 again, and what became of its records stays unknown', async () => {
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

  it('that the codec cannot read is sent on as it is, and nothing is kept of it', async () => {
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

  it('of an instance that died is never posted to V3, and a newer one of its key goes on', async () => {
    const faces = await startTwoFaces()
    const kept = await open(faces)
    const lost = new AdapterError('ADP_JOURNAL_LOST', 'it died before')
    const first = await faces.start({
      openJournal: () => Promise.resolve({ ...kept, settle: () => Promise.reject(lost) }),
    })
    const batch = faces.batch([1], 'one')
    await faces.setFaults({ ...onV2, kind: 'reset', apply: true })
    expect((await faces.post(first, batch)).status).toBe(504)
    expect(await kept.balances()).toMatchObject([{ received: 1, open: 1 }])
    // Its lease ends as it would where the process was killed.
    await kept.close()
    faces.served.side = 'v3'
    const second = await faces.start()
    expect(statusesOf(await faces.post(second, faces.batch([1], 'two')))).toEqual([201])
    // It came before the newer one, which must stay.
    expect(statusesOf(await faces.post(second, batch))).toEqual([409])
    expect(statusesOf(await faces.post(second, batch))).toEqual([409])
    expect(await faces.effects()).toEqual(['V2 1 one', 'V3 1 two'])
    const journal = await open(faces)
    expect(await journal.balances()).toMatchObject([{ open: 0 }])
    await journal.close()
  })

  it('is sent on unrecorded where the journal is late, is counted, and is known once it lands', async () => {
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
  ] as const)('with keys and without a journal: %s answers %i', async (stage, status, effects) => {
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
  })

  it('is not sent once this instance may have been taken for dead', async () => {
    const { faces, adapter, batch } = await startRelayed({ isCurrent: false })
    expect((await faces.post(adapter, batch)).status).toBe(503)
    Object.assign(faces.served, { isCurrent: true, side: 'v3' })
    expect(statusesOf(await faces.post(adapter, batch))).toEqual([201])
    expect(await faces.effects()).toEqual(['V3 1 one'])
  })
})
