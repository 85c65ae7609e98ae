import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'

import { sql } from 'kysely'
import { expect, it } from 'vitest'

import { purge } from '../../src/journal/retention.ts'
import { batchOf, beginNew, confirmed, START_MS, statesOf } from './batches.ts'
import { createJournalClock, makeFolder, openSqlite } from './open-sqlite.ts'

/** An age of the journal beyond every retention time. */
const ANY_AGE = Number.MAX_SAFE_INTEGER
const DAY_MS = 86_400_000
const retention = { replayForMs: DAY_MS, keepRecordsMs: 90 * DAY_MS }
const key = { id: 'k1', key: Buffer.alloc(32) }

it('a purge deletes requests and answers after one day and batches after 90 days, but never a batch with an open or parked record', async () => {
  const { journal, store } = await openSqlite(`${await makeFolder()}/journal.db`, { keys: [key] })
  const given = { credentials: 'bearer' }
  const done = await beginNew(journal, batchOf(['a'], given))
  await journal.settle(done, [confirmed(0)])
  const resend = await beginNew(journal, batchOf(['b', 'c'], given))
  await journal.settle(resend, [
    { position: 0, state: 'notApplied', answer: 'later', retry: 'resend' },
    confirmed(1),
  ])
  const parked = await beginNew(journal, batchOf(['d'], given))
  await journal.settle(parked, [
    { position: 0, state: 'parked', answer: 'ok', retry: START_MS + 80 * DAY_MS },
  ])
  const open = await beginNew(journal, batchOf(['e'], given))
  const young = await beginNew(journal, batchOf(['f'], { receivedMs: START_MS + 89.5 * DAY_MS }))
  await journal.settle(young, [confirmed(0)])
  const at = (days: number) => purge(store, retention, START_MS + days * DAY_MS + 1, ANY_AGE)
  const kept = async (batch: number) => {
    const stored = await journal.load(batch)
    const [first] = stored?.records ?? []
    return stored && [stored.payload !== undefined, stored.credentials, first?.answer, first?.retry]
  }

  expect(await at(0)).toEqual({ expired: 0, payloads: 0, batches: 0 })
  expect(await kept(resend)).toEqual([true, 'bearer', 'later', 'resend'])
  expect(await at(1)).toEqual({ expired: 1, payloads: 2, batches: 0 })
  expect(await kept(resend)).toEqual([false, undefined, undefined, undefined])
  expect((await journal.reopen(resend, [0], undefined)).after).toEqual(new Map())
  expect(await kept(done)).toEqual([false, undefined, undefined, undefined])
  expect(await kept(parked)).toEqual([true, 'bearer', 'ok', START_MS + 80 * DAY_MS])
  expect(await at(90)).toEqual({ expired: 0, payloads: 0, batches: 2 })
  expect(await kept(done)).toBeUndefined()
  expect(await kept(parked)).toEqual([true, 'bearer', 'ok', START_MS + 80 * DAY_MS])
  expect(await statesOf(journal, open)).toEqual(['open'])
  expect(await kept(young)).toEqual([true, undefined, 'answer 0', undefined])
  // The totals still count deleted records.
  expect(await journal.balances()).toMatchObject([
    { received: 6, confirmed: 3, notApplied: 1, parked: 1, open: 1 },
  ])
})

it('a purge of 120 expired batches deletes all of them', async () => {
  const { journal, store } = await openSqlite(`${await makeFolder()}/journal.db`)
  const refused = [{ key: 'a', refused: { answer: 'no' } }]
  await Promise.all(Array.from({ length: 120 }, () => journal.begin(batchOf([], { records: refused }))))
  expect(await purge(store, retention, START_MS + 91 * DAY_MS, ANY_AGE)).toEqual({
    expired: 0,
    payloads: 120,
    batches: 120,
  })
})

it('a purge leaves no trace of deleted data in the SQLite file', async () => {
  const file = `${await makeFolder()}/journal.db`
  const { journal, store } = await openSqlite(file)
  // Random bytes cannot be compressed, so the file contains them as they are.
  const payload = randomBytes(288_000)
  const traces = Array.from({ length: 4_500 }, (_, index) => payload.subarray(64 * index, 64 * index + 8))
  const batch = await beginNew(journal, batchOf(['a'], { payload }))
  await journal.settle(batch, [confirmed(0, 'MARK')])
  const countTraces = async () => {
    await sql`PRAGMA wal_checkpoint(TRUNCATE)`.execute(store.db)
    const bytes = await readFile(file)
    return [...traces, 'MARK'].filter((trace) => bytes.includes(trace)).length
  }
  // The end of a database page cuts some traces in two.
  expect(await countTraces()).toBeGreaterThan(4_400)
  await purge(store, retention, START_MS + 8 * DAY_MS, ANY_AGE)
  expect(await countTraces()).toBe(0)
})

type OpenedJournal = Awaited<ReturnType<typeof openSqlite>>

/** Advances the clock hour by hour, so that the journal does its periodic work in each hour. */
async function passHours(
  clock: ReturnType<typeof createJournalClock>,
  { store }: OpenedJournal,
  hours: number,
) {
  for (let hour = 0; hour < hours; hour += 1) {
    await clock.pass(3_600_000)
    // Queues behind the periodic work of the journal several times, so that this work has ended before the next hour.
    for (let step = 0; step < 20; step += 1) await store.exclusively(() => Promise.resolve())
  }
}

it('a purge runs every hour while an instance has the journal open', async () => {
  const clock = createJournalClock()
  const file = `${await makeFolder()}/journal.db`
  const opened = await openSqlite(file, { clock, keepRecordsMs: DAY_MS, replayForMs: DAY_MS })
  const { journal } = opened
  const batch = await beginNew(journal, batchOf(['a']))
  await journal.settle(batch, [confirmed(0)])
  await passHours(clock, opened, 24)
  await expect.poll(() => journal.load(batch), { timeout: 60_000 }).toBeDefined()
  await passHours(clock, opened, 3)
  await expect.poll(() => journal.load(batch), { timeout: 60_000 }).toBeUndefined()
})

it('a purge deletes nothing too early if the wall clock jumps forward', async () => {
  const clock = createJournalClock()
  const file = `${await makeFolder()}/journal.db`
  const opened = await openSqlite(file, { clock, keepRecordsMs: DAY_MS, replayForMs: DAY_MS })
  const { journal } = opened
  const old = await beginNew(journal, batchOf(['a']))
  await journal.settle(old, [confirmed(0)])
  await passHours(clock, opened, 12)
  const batch = await beginNew(journal, batchOf(['a']))
  await journal.settle(batch, [confirmed(0)])
  clock.setWall(400 * DAY_MS)
  await passHours(clock, opened, 15)
  await expect.poll(() => journal.load(old), { timeout: 60_000 }).toBeUndefined()
  expect(await journal.load(batch)).toBeDefined()
})

it('a purge deletes nothing too early after a process has started with a wall clock that is ahead', async () => {
  const clock = createJournalClock()
  const file = `${await makeFolder()}/journal.db`
  const options = { clock, keepRecordsMs: DAY_MS, replayForMs: DAY_MS }
  const { journal } = await openSqlite(file, options)
  const batch = await beginNew(journal, batchOf(['a']))
  await journal.settle(batch, [confirmed(0)])
  await journal.close()
  clock.setWall(400 * DAY_MS)
  const next = await openSqlite(file, options)
  await passHours(clock, next, 3)
  expect(await next.journal.load(batch)).toMatchObject({ records: [{ answer: 'answer 0' }] })
})

it('a purge deletes an unapplied batch of a newcomer after an hour, but no other batch', async () => {
  const { journal, store } = await openSqlite(`${await makeFolder()}/journal.db`)
  const resend = { position: 0, state: 'notApplied', answer: 'later', retry: 'resend' } as const
  const beginAs = (key: string, newcomer: boolean) => beginNew(journal, { ...batchOf([key]), newcomer })
  const [refused, open, unknown, known] = [
    await beginAs('a', true),
    await beginAs('b', true),
    await beginAs('c', true),
    await beginAs('d', false),
  ]
  for (const batch of [refused, known]) await journal.settle(batch, [resend])
  await journal.settle(unknown, [{ position: 0, state: 'unknown', answer: undefined, retry: START_MS }])
  expect(await purge(store, retention, START_MS + 3_600_000, ANY_AGE)).toMatchObject({ batches: 0 })
  expect(await purge(store, retention, START_MS + 3_600_001, ANY_AGE)).toMatchObject({ batches: 1 })
  expect(await journal.load(refused)).toBeUndefined()
  for (const batch of [open, unknown, known]) expect(await journal.load(batch)).toBeDefined()
})
