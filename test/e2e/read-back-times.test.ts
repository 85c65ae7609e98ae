import { describe, expect, it, onTestFinished, vi } from 'vitest'

import { openJournal } from '../../src/journal/index.ts'
import { sandboxHeaders } from '../sandbox/start-sandbox.ts'
import { failuresOf, readBatchReply } from '../support/batch-request.ts'
import { startUpstream } from '../support/scripted-upstream.ts'
import { type Adapter, startAdapter } from '../support/start-adapter.ts'
import { startTwoFaces, type TwoFaces } from './support/two-faces.ts'

/*
 * Which mark stands is decided by its identity, its content and the order of the journal; its time comes last. In each test the
 * clock or the precision of the service makes the time say something else.
 */

const SECOND_MS = 1_000
const HOUR_MS = 3_600_000
/** Ten seconds into a minute, with milliseconds that no coarser precision keeps. */
const START_MS = Date.parse('2026-06-10T10:00:10.754Z')

const onV2 = { face: 'V2', method: 'POST' } as const
const onV3 = { face: 'V3', method: 'POST' } as const
const unreadable = { face: 'V3', method: 'GET', kind: 'status', status: 500 } as const
const lostBefore = { ...onV3, kind: 'reset', apply: false, count: 1 } as const
const lostAfter = { ...onV3, kind: 'reset', apply: true, count: 1 } as const
const latency = (face: object) => ({ ...face, kind: 'latency', ms: 800, count: 1 })

const statusesOf = (reply: Parameters<typeof readBatchReply>[0]): number[] =>
  failuresOf(readBatchReply(reply)).map(({ status }) => status)

/** Clocks that the test sets: that of an adapter and that of the service, each in ms since `START_MS`. */
async function startClocks(choices: object = {}) {
  const faces = await startTwoFaces({ v3: { readBackAfterMs: [5, 10, 20], writeMode: 'single' }, ...choices })
  const serviceAt = (ms: number): Promise<void> =>
    faces.change('clock', { now: new Date(START_MS + ms).toISOString() })
  await serviceAt(0)
  const clock = { adapterMs: 0 }
  const start = (aheadMs = 0): Promise<Adapter> =>
    faces.start({ nowMs: () => START_MS + clock.adapterMs + aheadMs })
  return { faces, clock, serviceAt, start }
}

/** Waits until the journal has this many records. */
async function untilReceived({ journal }: TwoFaces, count: number): Promise<void> {
  const watch = await openJournal({ url: journal.url })
  await vi.waitFor(async () => expect((await watch.balances())[0]?.received).toBe(count), { timeout: 60_000 })
  await watch.close()
}

describe('the newest mark of a key is posted where its own POST was lost, although an older one', () => {
  const both = (older: string): string[] => [older, 'V3 1 newest']

  it('of another school on V2 was stamped after the newest was received', async () => {
    const { faces, clock, serviceAt, start } = await startClocks()
    const adapter = await start()
    await faces.setFaults([latency(onV2), lostBefore])
    const older = faces.post(adapter, faces.batch([1], 'older'))
    await untilReceived(faces, 1)
    await serviceAt(3 * SECOND_MS)
    clock.adapterMs = SECOND_MS
    faces.served.side = 'v3'
    const newest = faces.batch([1], 'newest')
    expect((await Promise.all([older, faces.post(adapter, newest)])).flatMap(statusesOf)).toEqual([201, 201])
    expect(await faces.effects()).toEqual(both('V2 1 older'))
    expect(statusesOf(await faces.post(adapter, newest))).toEqual([201])
    expect(await faces.effects()).toHaveLength(2)
  })

  it('of another instance was stamped by V3 after the newest was received', async () => {
    const { faces, clock, serviceAt, start } = await startClocks()
    faces.served.side = 'v3'
    await faces.change('values', { clock: 'server' })
    const [one, other] = [await start(), await start()]
    await faces.setFaults([latency(onV3), { ...lostBefore, skip: 1 }])
    const older = faces.post(one, faces.batch([1], 'older'))
    await untilReceived(faces, 1)
    await serviceAt(3 * SECOND_MS)
    clock.adapterMs = SECOND_MS
    const newest = faces.post(other, faces.batch([1], 'newest'))
    expect((await Promise.all([older, newest])).flatMap(statusesOf)).toEqual([201, 201])
    expect(await faces.effects()).toEqual(both('V3 1 older'))
  })

  it('was confirmed before the adapter started again', async () => {
    const { faces, clock, serviceAt, start } = await startClocks()
    faces.served.side = 'v3'
    await faces.change('values', { clock: 'server' })
    const before = await start()
    await faces.setFaults([latency(onV3), { ...lostBefore, skip: 1 }, unreadable])
    const older = faces.post(before, faces.batch([1], 'older'))
    await untilReceived(faces, 1)
    clock.adapterMs = SECOND_MS
    const newest = faces.batch([1], 'newest')
    const lost = faces.post(before, newest)
    await untilReceived(faces, 2)
    clock.adapterMs = 3 * SECOND_MS
    await serviceAt(3 * SECOND_MS + 1)
    expect((await Promise.all([older, lost])).flatMap(statusesOf)).toEqual([201, 504])
    await before.app.close()
    await faces.setFaults([])
    const adapter = await start()
    expect(statusesOf(await faces.post(adapter, newest))).toEqual([201])
    expect(await faces.effects()).toEqual(both('V3 1 older'))
  })
})

describe('a mark whose reply was lost is not posted again after', () => {
  /** Marks of three learners that are answered, so that the adapter has seen how the service stores them. */
  const answer = async (faces: TwoFaces, adapter: Adapter): Promise<void> => {
    faces.served.side = 'v3'
    expect(statusesOf(await faces.post(adapter, faces.batch([3, 4, 5], 'before')))).toEqual([201, 201, 201])
  }
  /** Posts a mark that is applied without an answer. */
  const lose = async (faces: TwoFaces, adapter: Adapter) => {
    await faces.setFaults(lostAfter)
    const statuses = statusesOf(await faces.post(adapter, faces.batch([1], 'lost')))
    return { statuses, effects: (await faces.effects()).filter((effect) => effect.endsWith('lost')) }
  }
  const once = { statuses: [201], effects: ['V3 1 lost'] }

  it.each([
    ['the clock of the service was set right by two hours', 2 * HOUR_MS],
    ['local times went back by an hour', HOUR_MS],
  ])('%s', async (_what, offsetMs) => {
    const { faces, clock, start } = await startClocks()
    const adapter = await start()
    await faces.change('values', { clock: 'server', offsetMs })
    await answer(faces, adapter)
    await faces.change('values', { clock: 'server' })
    clock.adapterMs = SECOND_MS
    expect(await lose(faces, adapter)).toEqual(once)
  })

  it('local times of clients went back by an hour', async () => {
    const { faces, clock } = await startClocks()
    let aheadMs = HOUR_MS
    // The service keeps the times of its clients, in its own zone.
    const zoned = await startUpstream(async ({ method, url, headers, body }, response) => {
      const local = body.replace(
        /"RecordedOn":"([^"]+)"/,
        (_whole, time: string) => `"RecordedOn":"${new Date(Date.parse(time) + aheadMs).toISOString()}"`,
      )
      const own = { ...sandboxHeaders, 'Content-Type': headers['content-type'] ?? 'application/json' }
      try {
        const options = { method, headers: own, ...(method === 'POST' && { body: local }) }
        const reply = await fetch(`${faces.url}${url}`, options)
        const text = await reply.text()
        response.writeHead(reply.status, { 'Content-Type': 'application/json' }).end(text)
      } catch {
        response.socket?.destroy()
      }
    })
    const { journal, partner } = faces
    const adapter = await startAdapter(
      zoned.url,
      { journal, partners: [partner] },
      { nowMs: () => START_MS + clock.adapterMs },
    )
    await answer(faces, adapter)
    aheadMs = 0
    clock.adapterMs = SECOND_MS
    // Times that are those of the clients again prove nothing else about the zone.
    expect(await lose(faces, adapter)).toEqual(once)
    aheadMs = -HOUR_MS
    await faces.setFaults(lostAfter)
    expect(statusesOf(await faces.post(adapter, faces.batch([2], 'again')))).toEqual([201])
    expect((await faces.effects()).filter((effect) => effect.endsWith('again'))).toEqual(['V3 2 again'])
  })

  it('the service began to cut milliseconds', async () => {
    const { faces, clock, start } = await startClocks()
    faces.served.side = 'v3'
    const adapter = await start()
    // A mark that is found with the very millisecond shows that times are kept.
    await faces.setFaults(lostAfter)
    expect(statusesOf(await faces.post(adapter, faces.batch([2], 'before')))).toEqual([201])
    await faces.change('values', { times: 'seconds' })
    clock.adapterMs = SECOND_MS
    expect(await lose(faces, adapter)).toEqual(once)
  })

  it('the clock of one instance was an hour ahead', async () => {
    const { faces, clock, start } = await startClocks()
    await faces.change('values', { clock: 'server', offsetMs: 40 })
    const adapter = await start()
    await answer(faces, adapter)
    const wrong = await start(HOUR_MS)
    expect(statusesOf(await faces.post(wrong, faces.batch([2], 'wrong')))).toEqual([201])
    await wrong.app.close()
    clock.adapterMs = SECOND_MS
    // Times of receipt never run backwards: those of the others are an hour ahead too, until their clocks have passed it.
    expect(await lose(faces, adapter)).toEqual(once)
  })
})

describe('with times to the minute an older mark is never posted over a newer one of the same minute', () => {
  const minutes = { times: 'minutes' }
  /** Twenty seconds later; the minute is the same. */
  const LATER_MS = 20 * SECOND_MS

  it('that V2 took while the older one waited for V3', async () => {
    const v3 = { readBackAfterMs: [5, 10, 20], budgetMs: 500, writeMode: 'single' }
    const { faces, clock, serviceAt, start } = await startClocks({ v3 })
    await faces.change('values', minutes)
    const adapter = await start()
    faces.served.side = 'v3'
    await faces.setFaults({ kind: 'status', status: 503, face: 'V3' })
    const { body } = faces.batch([1], 'older')
    // Its client gets 200 whatever becomes of it: the ids of header and body differ.
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
    await vi.waitFor(isTried, { timeout: 60_000 })
    expect(await faces.effects()).toEqual(['V2 1 newer'])
  })

  it('that V2 confirmed before the older one, lost on V2, comes again for V3', async () => {
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

  it('that another program wrote to V3', async () => {
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
