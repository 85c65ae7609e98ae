import { type KyselyPlugin, sql } from 'kysely'
import { describe, expect, it, vi } from 'vitest'

import { slotOf } from '../../src/journal/high-water.ts'
import { takeLease } from '../../src/journal/lease.ts'
import { isGone, ownIdentity } from '../../src/journal/process-identity.ts'
import { batchOf, beginNew, confirmed } from './batches.ts'
import { createJournalClock, makeFolder, openSqlite } from './open-sqlite.ts'

/** Opens two instances on one file, each with its own clock, so that a test can advance the clock of only one instance. */
async function openTwo() {
  const file = `${await makeFolder()}/journal.db`
  const clocks = [createJournalClock(), createJournalClock()] as const
  const lost: string[] = []
  const ignore = (): void => undefined
  const events = {
    failed: ignore,
    recovered: ignore,
    leaseLost: () => lost.push('lost'),
  }
  const one = await openSqlite(file, { clock: clocks[0], leaseMs: 9_000, events })
  const two = await openSqlite(file, { clock: clocks[1], leaseMs: 9_000 })
  /** Advances a clock, and waits until `done` no longer throws, because a renewal takes real time to access the file. */
  const passReal = async (ms: number, clock: (typeof clocks)[number], done: () => void | Promise<void>) => {
    await clock.pass(ms)
    await vi.waitFor(done, 60_000)
  }
  return { one: one.journal, two: two.journal, clocks, lost, passReal, store: two.store }
}

describe('a lease', () => {
  it('is renewed after a third of its period, and ends when its instance closes the journal', async () => {
    const { one, clocks, passReal } = await openTwo()
    expect(one.lease()).toBeDefined()
    await passReal(3_000, clocks[0], () => expect(one.lease()).toBeDefined())
    // The lease is still valid just before the next renewal, because a lease of 9 s is valid for 80 % of this time.
    await clocks[0].pass(2_999)
    expect(one.lease()).toBeDefined()
    await one.close()
    expect(one.lease()).toBeUndefined()
  })

  it('lets another instance take over its batches after its expiry', async () => {
    const { one, two, clocks, lost, passReal } = await openTwo()
    const batch = await beginNew(one, batchOf(['a', 'b']))
    await one.settle(batch, [confirmed(0)])
    expect(await two.takeOver()).toEqual([])
    await clocks[1].pass(10_799)
    expect(await two.takeOver()).toEqual([])
    await clocks[1].pass(1)
    expect(await two.takeOver()).toMatchObject([{ batch, after: new Map([[1, []]]) }])
    await expect(one.settle(batch, [confirmed(1)])).rejects.toMatchObject({ code: 'ADP_JOURNAL_LOST' })
    // Repeating an earlier outcome fails too, so that the client gets only the stored outcome.
    await expect(one.settle(batch, [confirmed(0)])).rejects.toMatchObject({ code: 'ADP_JOURNAL_LOST' })
    await two.settle(batch, [confirmed(1)])
    await passReal(3_000, clocks[0], () => expect(lost).toEqual(['lost']))
    await vi.waitFor(() => expect(one.lease()).toBeDefined(), 60_000)
  })

  it('is replaced by a new lease if it was lost and its instance begins another batch', async () => {
    const { one, two, clocks, lost } = await openTwo()
    expect(await two.takeOver()).toEqual([])
    await clocks[1].pass(10_800)
    expect(await two.takeOver()).toEqual([])
    const batch = await beginNew(one, batchOf(['a']))
    expect(lost).toEqual(['lost'])
    await one.settle(batch, [confirmed(0)])
    expect(await two.balances()).toMatchObject([{ received: 1, confirmed: 1 }])
  })

  it('no longer settles its batches after it was lost, even if the same instance takes the batches over with a new lease', async () => {
    const { one, two, clocks, lost } = await openTwo()
    const begun = await one.begin(batchOf(['a']))
    if (begun.kind !== 'new') throw new Error('known')
    await two.takeOver()
    await clocks[1].pass(10_800)
    expect(await two.takeOver()).toMatchObject([{ batch: begun.batch }])
    await two.close()
    await one.renewLease()
    expect(lost).toEqual(['lost'])
    const [again] = await one.takeOver()
    expect(again).toMatchObject({ batch: begun.batch, lease: one.lease() })
    await expect(one.settle(begun.batch, [confirmed(0)], begun.lease)).rejects.toMatchObject({
      code: 'ADP_JOURNAL_LOST',
    })
    await one.settle(begun.batch, [confirmed(0)], again?.lease)
  })

  it.each([
    ['forward by hours', 3 * 3_600_000],
    ['back by hours', -3 * 3_600_000],
    ['forward by a little more than clocks drift', 451],
    ['back by a little more than clocks drift', -451],
  ])('becomes invalid when the wall clock is set %s, and can be renewed at once', async (_how, ms) => {
    const { one, clocks } = await openTwo()
    const lease = one.lease()
    expect(lease).toBeDefined()
    clocks[0].setWall(ms)
    expect(one.lease()).toBeUndefined()
    expect(await one.renewLease()).toBe(lease)
    expect(one.lease()).toBe(lease)
  })

  it('becomes invalid if the machine was suspended for a minute during which the monotonic clock stood still', async () => {
    const { one, two, clocks } = await openTwo()
    const batch = await beginNew(one, batchOf(['a']))
    await two.takeOver()
    // A minute passes, which the first instance later sees only on its wall clock.
    await clocks[1].pass(60_000)
    expect(await two.takeOver()).toMatchObject([{ batch }])
    clocks[0].setWall(60_000)
    expect(one.lease()).toBeUndefined()
    expect(await one.renewLease()).not.toBe(1)
  })

  it.each([
    ['forward', 3 * 3_600_000],
    ['back', -3 * 3_600_000],
  ])(
    'keeps its batches while it is renewed, even if the wall clocks of all instances are set %s by hours',
    async (_how, ms) => {
      const { one, two, clocks } = await openTwo()
      await beginNew(one, batchOf(['a']))
      await two.takeOver()
      for (const clock of clocks) clock.setWall(ms)
      expect(await two.takeOver()).toEqual([])
      for (let round = 0; round < 8; round += 1) {
        await clocks[1].pass(3_000)
        await one.renewLease()
        expect(await two.takeOver()).toEqual([])
      }
    },
  )

  it('expires on time after its instance has stopped, even if the wall clock of another instance is set back', async () => {
    const { one, two, clocks } = await openTwo()
    const batch = await beginNew(one, batchOf(['a']))
    await two.takeOver()
    clocks[1].setWall(-3 * 3_600_000)
    await clocks[1].pass(10_800)
    expect(await two.takeOver()).toMatchObject([{ batch }])
  })

  it('allows its instance no takeover after it was lost, until it is renewed', async () => {
    const { one, two, clocks } = await openTwo()
    const batch = await beginNew(two, batchOf(['a']))
    await two.takeOver()
    await clocks[1].pass(10_800)
    expect(await two.takeOver()).toEqual([])
    await two.close()
    // The second instance has declared the first instance lost, so the first instance must renew its lease before a takeover.
    expect(await one.takeOver()).toEqual([])
    await one.renewLease()
    expect(await one.takeOver()).toMatchObject([{ batch }])
  })

  it('is renewed 450 ms, a twentieth of its period, after a failed renewal', async () => {
    const { store } = await openTwo()
    const clock = createJournalClock()
    const renewals: unknown[] = []
    let reachable = true
    const transformQuery: KyselyPlugin['transformQuery'] = ({ node }) => {
      if (!reachable) throw new Error('unreachable')
      return node
    }
    const db = store.db.withPlugin({
      transformQuery,
      transformResult: ({ result }) => Promise.resolve(result),
    })
    const lease = await takeLease({
      store: { ...store, db },
      clock,
      leaseMs: 9_000,
      identity: ownIdentity(),
      onRenewal: (error) => renewals.push(error),
      onLost: () => undefined,
    })
    reachable = false
    await clock.pass(3_000)
    await vi.waitFor(() => expect(renewals).toHaveLength(1), 60_000)
    reachable = true
    await clock.pass(450)
    await vi.waitFor(() => expect(renewals).toEqual([new Error('unreachable'), undefined]), 60_000)
    await clock.pass(7_199)
    expect(lease.holds()).toBe(true)
    await lease.end()
  })

  it('makes its instance report damage if the database lost the lease together with commits', async () => {
    const { one, store } = await openTwo()
    await beginNew(one, batchOf(['a']))
    const own = one.lease() ?? 0
    // Simulates an older copy of the database, which has neither the instance nor the commits.
    await store.db.deleteFrom('journal_instances').where('id', '=', own).execute()
    await sql`update journal_commits set commits = commits - 1 where slot = ${slotOf(own)}`.execute(store.db)
    await expect(one.begin(batchOf(['b'], { name: 'two' }))).rejects.toMatchObject({
      code: 'ADP_JOURNAL_DAMAGED',
    })
    expect(await one.renewLease()).not.toBe(own)
    await expect(one.begin(batchOf(['b'], { name: 'two' }))).rejects.toMatchObject({
      code: 'ADP_JOURNAL_DAMAGED',
    })
  })

  it('ends for good if another process got the number of its instance in an older copy of the database', async () => {
    const { one, store } = await openTwo()
    await beginNew(one, batchOf(['a']))
    const own = one.lease() ?? 0
    // Gives the number to another process. The commit counts stay, because the other process would have raised them again.
    const rows = store.db.updateTable('journal_instances')
    await rows.set({ started: 'later' }).where('id', '=', own).execute()
    const refused = { code: 'ADP_JOURNAL_DAMAGED' }
    await expect(one.begin(batchOf(['b'], { name: 'two' }))).rejects.toMatchObject(refused)
    await store.db.deleteFrom('journal_instances').where('id', '=', own).execute()
    await expect(one.begin(batchOf(['b'], { name: 'two' }))).rejects.toMatchObject(refused)
    expect(one.lease()).toBeUndefined()
  })

  it('expires if the store is blocked for too long, and is renewed afterwards', async () => {
    const { one, clocks, store } = await openTwo()
    // Holds the write lock for a long time, as another process might.
    let end: (() => void) | undefined
    const held = store.exclusively(() => new Promise<void>((resolve) => (end = resolve)))
    await vi.waitFor(() => expect(end).toBeDefined(), 60_000)
    await clocks[0].pass(7_201)
    expect(one.lease()).toBeUndefined()
    end?.()
    await held
    await vi.waitFor(() => expect(one.lease()).toBeDefined(), 60_000)
  })
})

describe('rateLimit.aloneSinceMs', () => {
  it('is the time of the first renewal that found no other instance, and becomes undefined when a renewal finds one', async () => {
    const file = `${await makeFolder()}/journal.db`
    const clock = createJournalClock()
    const { journal } = await openSqlite(file, { clock, leaseMs: 9_000 })
    const since = (): number | undefined => journal.rateLimit.aloneSinceMs()
    expect(since()).toBeUndefined()
    await clock.pass(100)
    await journal.renewLease()
    await clock.pass(100)
    await journal.renewLease()
    expect(since()).toBe(100)
    const other = await openSqlite(file, { leaseMs: 9_000 })
    expect(since()).toBe(100)
    await journal.renewLease()
    expect(since()).toBeUndefined()
    await other.journal.close()
    await clock.pass(100)
    expect(since()).toBeUndefined()
    await journal.renewLease()
    expect(since()).toBe(300)
  })

  it('is set again after the other instance was declared dead', async () => {
    const { two, clocks } = await openTwo()
    await two.takeOver()
    await clocks[1].pass(10_800)
    await two.renewLease()
    expect(two.rateLimit.aloneSinceMs()).toBeUndefined()
    await two.takeOver()
    await two.renewLease()
    expect(two.rateLimit.aloneSinceMs()).toBe(10_800)
  })

  it.each([3 * 3_600_000, -3 * 3_600_000])(
    'is undefined between a change of the wall clock by %i ms and the next renewal',
    async (ms) => {
      const clock = createJournalClock()
      const { journal } = await openSqlite(`${await makeFolder()}/journal.db`, { clock, leaseMs: 9_000 })
      await journal.renewLease()
      expect(journal.rateLimit.aloneSinceMs()).toBe(0)
      await clock.pass(100)
      clock.setWall(ms)
      expect(journal.rateLimit.aloneSinceMs()).toBeUndefined()
      await journal.renewLease()
      expect(journal.rateLimit.aloneSinceMs()).toBe(100)
    },
  )

  it('is undefined if the lease was not renewed in time', async () => {
    const clock = createJournalClock()
    const { journal, store } = await openSqlite(`${await makeFolder()}/journal.db`, { clock, leaseMs: 9_000 })
    await journal.renewLease()
    let end: (() => void) | undefined
    const held = store.exclusively(() => new Promise<void>((resolve) => (end = resolve)))
    await vi.waitFor(() => expect(end).toBeDefined(), 60_000)
    await clock.pass(7_199)
    expect(journal.rateLimit.aloneSinceMs()).toBe(0)
    await clock.pass(1)
    expect(journal.rateLimit.aloneSinceMs()).toBeUndefined()
    end?.()
    await held
  })
})

describe('isGone', () => {
  const own = ownIdentity()

  it.each([
    ['is the caller itself', own, false],
    ['has an id that no running process has', { ...own, pid: 2 ** 30 }, true],
    ['has an id that another process has taken since', { ...own, started: '1' }, own.started !== ''],
    ['ran on another machine', { ...own, host: 'elsewhere', pid: 2 ** 30 }, false],
    [
      'ran before the machine was rebooted, or in another container',
      { ...own, boot: 'other', pid: 2 ** 30 },
      false,
    ],
  ])('returns $2 for a process that %s', (_what, process, gone) => {
    expect(isGone(process, own)).toBe(gone)
  })

  it.each([
    ['no running process has', { alive: false, started: undefined }, true],
    ['a hidden process has', { alive: true, started: undefined }, false],
    ['a zombie still has', { alive: true, started: '' }, true],
    ['another process has', { alive: true, started: '8' }, true],
    ['the process itself still has', { alive: true, started: '7' }, false],
  ])('returns $2 for a process whose id %s', (_who, sight, gone) => {
    expect(isGone({ ...own, started: '7' }, own, () => sight)).toBe(gone)
  })
})
