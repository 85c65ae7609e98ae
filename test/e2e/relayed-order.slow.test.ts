import { describe, expect, it, onTestFinished, vi } from 'vitest'

import { openJournal } from '../../src/journal/index.ts'
import { failuresOf, readBatchReply } from '../support/batch-request.ts'
import type { Adapter } from '../support/start-adapter.ts'
import { missingPostgres, startPostgres } from '../support/start-postgres.ts'
import { journalFile } from './support/journal-file.ts'
import { startTwoFaces, type TwoFaces } from './support/two-faces.ts'

const statusesOf = (reply: Parameters<typeof readBatchReply>[0]): number[] =>
  failuresOf(readBatchReply(reply)).map(({ status }) => status)
const onV3 = { face: 'V3' } as const
const deadV3 = { kind: 'reset', ...onV3 }
const unreadable = { kind: 'status', status: 500, method: 'GET' }

/** A mark that was sent to V3, and nothing says what became of it. Afterwards V2 serves. */
async function loseOnV3(faces: TwoFaces, adapter: Adapter, applied: boolean, after: object[] = []) {
  faces.served.side = 'v3'
  const batch = faces.batch([1], 'one')
  await faces.setFaults([
    { kind: 'reset', apply: applied, ...onV3, method: 'POST' },
    { ...unreadable, ...onV3 },
  ])
  expect(statusesOf(await faces.post(adapter, batch))).toEqual([504])
  await faces.setFaults(after)
  faces.served.side = 'v2'
  return batch
}

describe('a write for V2 whose key has an unknown outcome on V3', () => {
  it.each([
    ['read through V3', []],
    ['read through V2 with V3 dead', [deadV3]],
  ])('is sent once the older one was found: %s', async (_how, after) => {
    const faces = await startTwoFaces()
    const adapter = await faces.start()
    const older = await loseOnV3(faces, adapter, true, after)
    expect(statusesOf(await faces.post(adapter, faces.batch([1, 2], 'two')))).toEqual([201, 201])
    expect(await faces.effects()).toEqual(['V3 1 one', 'V2 1 two', 'V2 2 two'])
    // The older one is known to have been applied: its client gets that answer.
    await faces.setFaults([])
    expect(statusesOf(await faces.post(adapter, older))).toEqual([201])
    expect(await faces.effects()).toHaveLength(3)
  })

  it.each([
    ['read through V3', []],
    ['read through V2 with V3 dead', [deadV3]],
  ])('keeps one that was not applied from ever being posted: %s', async (_how, after) => {
    const faces = await startTwoFaces()
    const adapter = await faces.start()
    const older = await loseOnV3(faces, adapter, false, after)
    expect(statusesOf(await faces.post(adapter, faces.batch([1], 'two')))).toEqual([201])
    await faces.setFaults([])
    expect(statusesOf(await faces.post(adapter, older))).toEqual([409])
    faces.served.side = 'v3'
    expect(statusesOf(await faces.post(adapter, older))).toEqual([409])
    expect(await faces.effects()).toEqual(['V2 1 two'])
    const journal = await openJournal({ url: faces.journal.url })
    expect(await journal.due(Date.now() + 60_000, 10)).toEqual([])
    await journal.close()
  })

  it('is refused with 503 where nobody can read the older one in time; other keys go on', async () => {
    const faces = await startTwoFaces({ v3: { readBackAfterMs: [20, 100], budgetMs: 1_000 } })
    const adapter = await faces.start()
    await loseOnV3(faces, adapter, true, [deadV3, { ...unreadable, face: 'V2' }])
    const held = faces.post(adapter, faces.batch([1, 2], 'two'))
    expect(statusesOf(await faces.post(adapter, faces.batch([3], 'three')))).toEqual([201])
    expect((await held).status).toBe(503)
    expect(await faces.effects()).toEqual(['V3 1 one', 'V2 3 three'])
  })

  it('is held on another instance as well', async () => {
    const faces = await startTwoFaces()
    const [one, other] = [await faces.start(), await faces.start()]
    await loseOnV3(faces, one, true)
    const replies = await Promise.all([
      faces.post(other, faces.batch([1], 'two')),
      faces.post(one, faces.batch([1], 'three')),
    ])
    expect(replies.flatMap(statusesOf)).toEqual([201, 201])
    const effects = await faces.effects()
    expect([effects[0], ...effects.slice(1).sort()]).toEqual(['V3 1 one', 'V2 1 three', 'V2 1 two'])
  })
})

/** A record that waits for V3, whose client was answered 200 for all: it is retried in the background. */
async function parkOnV3() {
  // What V2 takes is newer by its own clock.
  const faces = await startTwoFaces(
    { v3: { readBackAfterMs: [20, 100], budgetMs: 500 } },
    journalFile(),
    10_000,
  )
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

describe('a record that waits for V3', () => {
  it('is not posted over a newer mark that V2 took while the journal could not be reached', async () => {
    const { faces, adapter, retry } = await parkOnV3()
    Object.assign(faces.served, { side: 'v2', stage: 'legacy', known: 'nothing' })
    expect(statusesOf(await faces.post(adapter, faces.batch([1], 'newer')))).toEqual([201])
    expect(await retry()).toMatchObject({ confirmed: 0, unknown: 1 })
    expect(await faces.effects()).toEqual(['V2 1 newer'])
  })

  it('is posted where no newer mark stands', async () => {
    const { faces, adapter, retry } = await parkOnV3()
    Object.assign(faces.served, { side: 'v2', stage: 'legacy', known: 'nothing' })
    expect(statusesOf(await faces.post(adapter, faces.batch([2], 'other')))).toEqual([201])
    expect(await retry()).toMatchObject({ confirmed: 1 })
    expect(await faces.effects()).toEqual(['V2 2 other', 'V3 1 older'])
  })
})

const kinds = ['SQLite', ...(missingPostgres() === undefined ? ['PostgreSQL'] : [])]

describe.each(kinds)('two instances on one journal in %s', (kind) => {
  it('keep the order of a key from V3 to V2 and back', async () => {
    const postgres = kind === 'SQLite' ? undefined : await startPostgres()
    onTestFinished(() => postgres?.close())
    const url = await postgres?.createDatabase()
    const faces = await startTwoFaces({}, url === undefined ? undefined : { url, keys: [] })
    const [one, other] = [await faces.start(), await faces.start()]
    const watch = await openJournal({ url: faces.journal.url })
    const untilReceived = (count: number): Promise<void> =>
      vi.waitFor(async () => expect((await watch.balances())[0]?.received).toBe(count), 60_000)
    const slow = (face: 'V2' | 'V3'): object => ({
      kind: 'latency',
      ms: 800,
      face,
      method: 'POST',
      count: 1,
    })
    faces.served.side = 'v3'
    await faces.setFaults([slow('V3'), slow('V2')])
    const first = faces.post(one, faces.batch([1], 'one'))
    await untilReceived(1)
    faces.served.side = 'v2'
    const second = faces.post(other, faces.batch([1], 'two'))
    await untilReceived(2)
    faces.served.side = 'v3'
    const third = faces.post(one, faces.batch([1], 'three'))
    expect((await Promise.all([first, second, third])).flatMap(statusesOf)).toEqual([201, 201, 201])
    expect(await faces.effects()).toEqual(['V3 1 one', 'V2 1 two', 'V3 1 three'])
    expect(await watch.balances()).toMatchObject([{ received: 3, confirmed: 3 }])
    await watch.close()
  })
})
