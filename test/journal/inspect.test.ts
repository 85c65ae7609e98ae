import { sql } from 'kysely'
import { describe, expect, it, onTestFinished } from 'vitest'

import { type JournalInspector, openInspector, openJournal, type Settled } from '../../src/journal/index.ts'
import { eachDatabase } from '../support/each-database.ts'
import { batchOf, beginNew, confirmed, START_MS } from './batches.ts'
import { makeFolder, openSqlite } from './open-sqlite.ts'

const none = { open: 0, confirmed: 0, refused: 0, unknown: 0, parked: 0, notApplied: 0 }
const dead: Settled = { position: 1, state: 'refused', answer: 'MARK', reason: 'ATT_VAL_2', deadLetter: true }

describe.each(eachDatabase())('the inspector of a journal in %s', (_name, { test }) => {
  /** Opens an inspector of a journal that another connection has open, with batches 1 to 3 of two partners. */
  async function open(url: string): Promise<JournalInspector> {
    const journal = await openJournal({ url })
    onTestFinished(() => journal.close())
    await beginNew(journal, batchOf(['a', 'b', 'c']))
    await journal.settle(1, [confirmed(0, 'MARK'), dead])
    await beginNew(journal, batchOf(['d'], { partner: 'other', receivedMs: START_MS + 10 }))
    await journal.settle(2, [
      { position: 0, state: 'unknown', answer: 'MARK', reason: 'timeout', retry: START_MS + 99 },
    ])
    await beginNew(journal, batchOf(['e'], { receivedMs: START_MS + 20 }))
    const inspector = await openInspector(url)
    onTestFinished(() => inspector.close())
    return inspector
  }
  const shows = (what: string, look: (inspector: JournalInspector) => Promise<void>): void =>
    test(what, async (url) => look(await open(url)))

  shows('lists batches, newest first, filtered by partner, state and time', async (inspector) => {
    const one = {
      batch: 1,
      partner: 'acme',
      receivedMs: START_MS,
      records: 3,
      nextDueMs: undefined,
      deadLetters: 1,
    }
    const all = await inspector.batches({ limit: 10 })
    expect(all.map(({ batch }) => batch)).toEqual([3, 2, 1])
    expect(all[2]).toEqual({ ...one, states: { ...none, open: 1, confirmed: 1, refused: 1 } })
    expect(all[1]).toMatchObject({
      partner: 'other',
      nextDueMs: START_MS + 99,
      states: { ...none, unknown: 1 },
    })
    const numbers = async (filter: object) =>
      (await inspector.batches({ limit: 10, ...filter })).map(({ batch }) => batch)
    expect(await numbers({ partner: 'acme' })).toEqual([3, 1])
    expect(await numbers({ state: 'open' })).toEqual([3, 1])
    expect(await numbers({ state: 'unknown' })).toEqual([2])
    expect(await numbers({ sinceMs: START_MS + 10 })).toEqual([3, 2])
    expect(await numbers({ before: 3 })).toEqual([2, 1])
    expect(await numbers({ limit: 1 })).toEqual([3])
  })

  shows('shows the outcome of each record of a batch without its values', async (inspector) => {
    const report = await inspector.batch(1)
    const record = {
      batch: 1,
      partner: 'acme',
      receivedMs: START_MS,
      retry: undefined,
      attempts: 1,
      superseded: false,
    }
    const settledMs = expect.any(Number) as unknown
    const remedy = expect.stringContaining('AttendableEvent') as unknown
    expect(report?.parts).toEqual([
      {
        ...record,
        position: 0,
        state: 'confirmed',
        reason: undefined,
        deadLetter: false,
        remedy: undefined,
        settledMs,
      },
      { ...record, position: 1, state: 'refused', reason: 'ATT_VAL_2', deadLetter: true, remedy, settledMs },
      {
        ...record,
        position: 2,
        state: 'open',
        reason: undefined,
        deadLetter: false,
        remedy: undefined,
        settledMs: undefined,
      },
    ])
    expect(JSON.stringify(report)).not.toContain('MARK')
    expect(await inspector.batch(9)).toBeUndefined()
  })

  shows('lists dead letters with a remedy until they are dismissed', async (inspector) => {
    const [letter, ...more] = await inspector.deadLetters({ limit: 10 })
    expect(more).toEqual([])
    expect(letter).toMatchObject({
      batch: 1,
      position: 1,
      reason: 'ATT_VAL_2',
      remedy: expect.stringContaining('AttendableEvent') as unknown,
    })
    expect(await inspector.deadLetters({ partner: 'other', limit: 10 })).toEqual([])
    expect(await inspector.dismiss(1, [0])).toBe(0)
    expect(await inspector.dismiss(1)).toBe(1)
    expect(await inspector.deadLetters({ limit: 10 })).toEqual([])
  })

  shows('returns the totals of each partner together with the stored records by state', async (inspector) => {
    expect(await inspector.balances()).toEqual([
      {
        partner: 'acme',
        received: 4,
        ...none,
        open: 2,
        confirmed: 1,
        refused: 1,
        kept: { ...none, open: 2, confirmed: 1, refused: 1 },
        holds: true,
      },
      { partner: 'other', received: 1, ...none, unknown: 1, kept: { ...none, unknown: 1 }, holds: true },
    ])
  })

  shows('makes all records due that wait for their next retry', async (inspector) => {
    expect(await inspector.makeDue(START_MS, 1)).toEqual([])
    expect(await inspector.makeDue(START_MS, 2, [1])).toEqual([])
    expect(await inspector.makeDue(START_MS)).toEqual([{ batch: 2, positions: [0] }])
    expect(await inspector.batches({ state: 'unknown', limit: 1 })).toMatchObject([{ nextDueMs: START_MS }])
    expect(await inspector.makeDue(START_MS + 50)).toEqual([{ batch: 2, positions: [0] }])
    expect(await inspector.batches({ state: 'unknown', limit: 1 })).toMatchObject([{ nextDueMs: START_MS }])
  })
})

it.each([
  ['an open record that the totals do not count', `update journal_ledger set open = open - 1`],
  ['more records in a state than the totals count', `update journal_ledger set confirmed = 0`],
  ['a batch with a wrong number of open records', `update journal_batches set open = 5`],
  ['a batch with a wrong number of unknown records', `update journal_batches set unknown = 1`],
  ['a batch with a wrong number of active records', `update journal_batches set active = 0`],
])('the inspector reports totals that do not balance if the journal has %s', async (_what, damage) => {
  const file = `${await makeFolder()}/journal.db`
  const { journal, store } = await openSqlite(file)
  await beginNew(journal, batchOf(['a', 'b']))
  await journal.settle(1, [confirmed(0)])
  const inspector = await openInspector(`sqlite:${file}`)
  onTestFinished(() => inspector.close())
  expect(await inspector.balances()).toMatchObject([{ holds: true }])
  await sql.raw(damage).execute(store.db)
  expect(await inspector.balances()).toMatchObject([{ holds: false }])
})

it('the inspector gives each dead letter a remedy that fits the state and reason of the record', async () => {
  const letters = [
    ['refused', 'ATT_VAL_3', /SchoolAttendanceCode/],
    ['refused', 'SOMETHING_NEW', /The service refused the record/],
    ['refused', undefined, /The service refused the record/],
    ['unknown', 'timeout', /Look the mark up/],
    ['unknown', 'SOMETHING_NEW', /Look the mark up/],
    ['unknown', 'overwritten', /Another program/],
  ] as const
  const file = `${await makeFolder()}/journal.db`
  const { journal } = await openSqlite(file)
  const batch = await beginNew(journal, batchOf(letters.map((_, position) => `key ${position}`)))
  await journal.settle(
    batch,
    letters.map(([state, reason], position) => ({ ...dead, position, state, reason })),
  )
  const inspector = await openInspector(`sqlite:${file}`)
  onTestFinished(() => inspector.close())
  expect((await inspector.deadLetters({ limit: 10 })).map(({ remedy }) => remedy)).toEqual(
    letters.map(([, , text]) => expect.stringMatching(text) as unknown),
  )
})
