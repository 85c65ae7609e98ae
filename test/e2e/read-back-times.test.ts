import { describe, expect, it, onTestFinished, vi } from 'vitest'

import { openJournal } from '../../src/journal/index.ts'
import { statusesOf } from '../support/batch-request.ts'
import { type Adapter, startAdapter } from '../support/start-adapter.ts'
import { startTwoFaces } from './support/two-faces.ts'

/*
 * The adapter finds the current mark by its identity, its content and the order of the journal, and only then by its time. In each test,
 * the clock or the time precision of the service makes the time misleading.
 */

const SECOND_MS = 1_000
/** Ten seconds into a minute, with milliseconds that no coarser precision preserves. */
const START_MS = Date.parse('2026-06-10T10:00:10.754Z')

const onV2 = { face: 'V2', method: 'POST' } as const
const onV3 = { face: 'V3', method: 'POST' } as const
const unreadable = { face: 'V3', method: 'GET', kind: 'status', status: 500 } as const
const lostBefore = { ...onV3, kind: 'reset', apply: false, count: 1 } as const

/** A fault that loses the reply after V3 applied the write. */
const lostAfter = { ...onV3, kind: 'reset', apply: true, count: 1 } as const

/** Starts a service whose clock `serviceAt` sets. `clock.adapterMs` is the adapters' clock. Both count milliseconds from `START_MS`. */
async function startClocks(choices: object = {}, service: Parameters<typeof startTwoFaces>[2] = {}) {
  const usual = { v3: { readBackAfterMs: [5, 10, 20], writeMode: 'single' } }
  const faces = await startTwoFaces({ ...usual, ...choices }, undefined, service)
  const serviceAt = (ms: number): Promise<void> =>
    faces.change('clock', { now: new Date(START_MS + ms).toISOString() })
  await serviceAt(0)
  const clock = { adapterMs: 0 }
  const start = (aheadMs = 0): Promise<Adapter> =>
    faces.start({ nowMs: () => START_MS + clock.adapterMs + aheadMs })
  return { faces, clock, serviceAt, start }
}

describe('an older mark, when the service cuts times to the minute', () => {
  const minutes = { times: 'minutes' }
  /** Twenty seconds after `START_MS`, within the same minute. */
  const LATER_MS = 20 * SECOND_MS

  it('is not posted over a newer mark that V2 accepted while V3 answered 503 to the older mark', async () => {
    const v3 = { readBackAfterMs: [5, 10, 20], budgetMs: 500, writeMode: 'single' }
    const { faces, clock, serviceAt, start } = await startClocks({ v3 })
    await faces.change('values', minutes)
    const adapter = await start()
    faces.served.side = 'v3'
    await faces.setFaults({ kind: 'status', status: 503, face: 'V3' })
    const { body } = faces.batch([1], 'older')
    // The client gets 200 for every outcome, because the ids of header and body differ.
    const headers = { 'Content-Type': 'multipart/mixed; boundary=batch_x' }
    expect((await faces.post(adapter, { headers, body })).status).toBe(200)
    Object.assign(faces.served, { side: 'v2', stage: 'legacy', known: 'nothing' })
    await serviceAt(LATER_MS)
    expect(statusesOf(await faces.post(adapter, faces.batch([1], 'newer')))).toEqual([201])
    const watch = await openJournal({ url: faces.journal.url })
    onTestFinished(() => watch.close())
    await faces.setFaults([])
    clock.adapterMs = LATER_MS + 15 * SECOND_MS
    const isTried = async (): Promise<void> => expect(adapter.log.join()).toContain('recovered')
    await vi.waitFor(isTried, 60_000)
    expect(await faces.effects()).toEqual(['V2 1 newer'])
  })

  it('is not posted over a newer mark that V2 confirmed, even if the older mark was lost on V2 and is resent to V3', async () => {
    const { faces, clock, serviceAt, start } = await startClocks()
    await faces.change('values', minutes)
    Object.assign(faces.served, { stage: 'shadow', known: 'identity' })
    const adapter = await start()
    await faces.setFaults({ ...onV2, kind: 'reset', apply: false, count: 1 })
    const older = faces.batch([1], 'older')
    expect((await faces.post(adapter, older)).status).toBe(504)
    clock.adapterMs = LATER_MS
    await serviceAt(LATER_MS)
    expect(statusesOf(await faces.post(adapter, faces.batch([1], 'newer')))).toEqual([201])
    Object.assign(faces.served, { side: 'v3', stage: 'v3' })
    const [status] = statusesOf(await faces.post(adapter, older))
    expect(await faces.effects()).toEqual(['V2 1 newer'])
    expect([409, 504]).toContain(status)
  })

  it('is not posted over a newer mark that another program wrote to V3', async () => {
    const { faces, clock, serviceAt, start } = await startClocks()
    await faces.change('values', minutes)
    faces.served.side = 'v3'
    const adapter = await start()
    await faces.setFaults([lostBefore, unreadable])
    const older = faces.batch([1], 'older')
    expect(statusesOf(await faces.post(adapter, older))).toEqual([504])
    await faces.setFaults([])
    clock.adapterMs = LATER_MS
    await serviceAt(LATER_MS)
    const other = await startAdapter(
      faces.url,
      { partners: [faces.partner] },
      { nowMs: () => START_MS + LATER_MS },
    )
    expect(statusesOf(await faces.post(other, faces.batch([1], 'newer')))).toEqual([201])
    expect(statusesOf(await faces.post(adapter, older))).toEqual([504])
    expect(await faces.effects()).toEqual(['V3 1 newer'])
  })
})

describe.each([0, 90 * SECOND_MS])(
  'the adapter, after two lost writes of one learner and event, with a service clock that is %i ms ahead',
  (aheadMs) => {
    it('writes each mark once, the older mark before the newer mark', async () => {
      const { faces, clock, serviceAt, start } = await startClocks()
      faces.served.side = 'v3'
      const adapter = await start()
      await serviceAt(aheadMs)
      await faces.setFaults([lostAfter, unreadable])
      const older = faces.batch([1], 'older')
      expect(statusesOf(await faces.post(adapter, older))).toEqual([504])
      await faces.setFaults([lostBefore, unreadable])
      const newer = faces.batch([1], 'newer')
      expect(statusesOf(await faces.post(adapter, newer))).toEqual([504])
      await faces.setFaults([])
      clock.adapterMs = 15 * SECOND_MS
      await vi.waitFor(
        async () => expect(await faces.effects()).toEqual(['V3 1 older', 'V3 1 newer']),
        60_000,
      )
      await vi.waitFor(
        async () => expect(statusesOf(await faces.post(adapter, newer))).toEqual([201]),
        60_000,
      )
      expect(statusesOf(await faces.post(adapter, older))).toEqual([409])
      expect(await faces.effects()).toEqual(['V3 1 older', 'V3 1 newer'])
    })
  },
)

it('the adapter posts a newer mark even if V3 shows an older, lost mark with a later time', async () => {
  const { faces, clock, serviceAt, start } = await startClocks({}, { onExisting: 'duplicate' })
  faces.served.side = 'v3'
  await faces.change('values', { clock: 'server' })
  const adapter = await start()
  await serviceAt(90 * SECOND_MS)
  await faces.setFaults([lostAfter, unreadable])
  expect(statusesOf(await faces.post(adapter, faces.batch([1], 'older')))).toEqual([504])
  await serviceAt(0)
  await faces.setFaults([])
  expect(statusesOf(await faces.post(adapter, faces.batch([1], 'middle')))).toEqual([201])
  await faces.setFaults([lostBefore, unreadable])
  const newest = faces.batch([1], 'newest')
  expect(statusesOf(await faces.post(adapter, newest))).toEqual([504])
  await faces.setFaults([])
  clock.adapterMs = 15 * SECOND_MS
  await vi.waitFor(async () => expect(statusesOf(await faces.post(adapter, newest))).toEqual([201]), 60_000)
  expect(await faces.effects()).toEqual(['V3 1 older', 'V3 1 middle', 'V3 1 newest'])
})
