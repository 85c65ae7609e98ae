import { describe, expect, it, onTestFinished, vi } from 'vitest'

import { openJournal } from '../../src/journal/index.ts'
import type { Adapter } from '../support/start-adapter.ts'
import { journalFile } from './support/journal-file.ts'
import { startTwoFaces, type TwoFaces } from './support/two-faces.ts'
import { statusesOf } from '../support/batch-request.ts'

const onV3 = { face: 'V3' } as const
const deadV3 = { kind: 'reset', ...onV3 }
const unreadable = { kind: 'status', status: 500, method: 'GET' }

/** Posts a mark to V3 whose outcome stays unknown, and then lets V2 serve. */
async function loseOnV3(faces: TwoFaces, adapter: Adapter, after: object[]): Promise<void> {
  faces.served.side = 'v3'
  await faces.setFaults([
    { kind: 'reset', apply: true, ...onV3, method: 'POST' },
    { ...unreadable, ...onV3 },
  ])
  expect(statusesOf(await faces.post(adapter, faces.batch([1], 'one')))).toEqual([504])
  await faces.setFaults(after)
  faces.served.side = 'v2'
}

it('a write for V2 gets 503 if an older write of the same learner and event was lost on V3 and cannot be read back', async () => {
  const faces = await startTwoFaces({ v3: { readBackAfterMs: [20, 100], budgetMs: 1_000 } })
  const adapter = await faces.start()
  await loseOnV3(faces, adapter, [deadV3, { ...unreadable, face: 'V2' }])
  const held = faces.post(adapter, faces.batch([1, 2], 'two'))
  expect(statusesOf(await faces.post(adapter, faces.batch([3], 'three')))).toEqual([201])
  expect((await held).status).toBe(503)
  expect(await faces.effects()).toEqual(['V3 1 one', 'V2 3 three'])
})

/** Parks a record that V3 answers with 503. The ids of its batch differ, so the client gets 200, and the adapter retries the record. */
async function parkOnV3() {
  // The clock of the service is 10 s ahead, so marks that V2 accepts have later times than the parked mark.
  const faces = await startTwoFaces({ v3: { readBackAfterMs: [20, 100], budgetMs: 500 } }, journalFile(), {
    aheadMs: 10_000,
  })
  let aheadMs = 0
  const adapter = await faces.start({ nowMs: () => Date.now() + aheadMs })
  const watch = await openJournal({ url: faces.journal.url })
  onTestFinished(() => watch.close())
  faces.served.side = 'v3'
  await faces.setFaults([{ kind: 'status', status: 503, ...onV3 }])
  const { headers, body } = faces.batch([1], 'older')
  const differing = { headers: { ...headers, 'Content-Type': 'multipart/mixed; boundary=batch_x' }, body }
  expect((await faces.post(adapter, differing)).status).toBe(200)
  expect(await watch.balances()).toMatchObject([{ parked: 1 }])
  return {
    faces,
    adapter,
    retry: async () => {
      await faces.setFaults([])
      aheadMs += 30_000
      await vi.waitFor(
        async () => expect(await watch.balances()).toMatchObject([{ parked: 0, open: 0 }]),
        60_000,
      )
      return (await watch.balances())[0]
    },
  }
}

describe('a parked record that waits for V3', () => {
  it('is not posted over a newer mark that V2 accepted while the journal was unreachable', async () => {
    const { faces, adapter, retry } = await parkOnV3()
    Object.assign(faces.served, { side: 'v2', stage: 'legacy', known: 'nothing' })
    expect(statusesOf(await faces.post(adapter, faces.batch([1], 'newer')))).toEqual([201])
    expect(await retry()).toMatchObject({ confirmed: 0, unknown: 1 })
    expect(await faces.effects()).toEqual(['V2 1 newer'])
  })

  it('is posted if no newer mark of its learner and event was written', async () => {
    const { faces, adapter, retry } = await parkOnV3()
    Object.assign(faces.served, { side: 'v2', stage: 'legacy', known: 'nothing' })
    expect(statusesOf(await faces.post(adapter, faces.batch([2], 'other')))).toEqual([201])
    expect(await retry()).toMatchObject({ confirmed: 1 })
    expect(await faces.effects()).toEqual(['V2 2 other', 'V3 1 older'])
  })
})
