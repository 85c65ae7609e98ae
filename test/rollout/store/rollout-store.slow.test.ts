import { Client } from 'pg'
import { describe, expect, onTestFinished, vi } from 'vitest'

import { openRolloutStore } from '../../../src/rollout/store/rollout-store.ts'
import { batchOf, beginNew, confirmed } from '../../journal/batches.ts'
import { eachDatabase } from '../../support/each-database.ts'
import { acknowledged, canary, changeTo, goForward, legacy, serve, shadow, soon } from './open-stores.ts'

const databases = eachDatabase()
const [, [, postgres]] = databases

describe.each(databases)('the store of stages in %s', (_name, { test }) => {
  test('has no stages until an operator sets a stage', async (url) => {
    const { store, instance } = await serve(url)
    expect(await store.snapshot()).toEqual({
      nowMs: expect.any(Number) as number,
      trail: { entries: 0, hash: '' },
      partners: new Map(),
      begins: new Map(),
      settled: new Set(),
      liveInstances: [instance()],
      acknowledgements: [],
    })
  })

  test('reports a partner as settled if the partner has no open or due records for V3', async (url) => {
    const { store, journal } = await serve(url)
    const settledOf = async (...left: string[]) => [...(await store.snapshot(undefined, left)).settled]
    const batch = await beginNew(journal, batchOf(['a', 'b', 'c']))
    await beginNew(journal, batchOf(['d'], { partner: 'relayed', side: 'v2' }))
    expect(await settledOf('acme', 'relayed', 'other')).toEqual(['relayed', 'other'])
    const parked = { position: 0, state: 'parked', answer: undefined, retry: Date.now() } as const
    await journal.settle(batch, [parked, confirmed(1), confirmed(2)])
    expect(await settledOf('acme', 'other')).toEqual(['other'])
    await journal.reopen(batch, [0], undefined)
    await journal.settle(batch, [confirmed(0)])
    expect(await settledOf('acme', 'other')).toEqual(['acme', 'other'])
    expect(await settledOf()).toEqual([])
  })

  test('returns the clients that wrote through V2, latest first, but no client that was never accepted', async (url) => {
    const { store, journal } = await serve(url)
    const write = (key: string, receivedMs: number, given: object) =>
      beginNew(journal, batchOf([key], { receivedMs: 1_000_000 + receivedMs, ...given }))
    await write('a', 1, { owner: 'one', side: 'v2' })
    await write('b', 2, { owner: 'two' })
    await write('c', 3, { owner: 'one' })
    await write('d', 4, { owner: 'three', newcomer: true })
    await write('e', 5, { owner: 'four', partner: 'other' })
    const one = { owner: 'one', requests: 2, firstMs: 1_000_001, lastMs: 1_000_003, lastOnV2Ms: 1_000_001 }
    const two = { owner: 'two', requests: 1, firstMs: 1_000_002, lastMs: 1_000_002, lastOnV2Ms: 0 }
    expect(await store.clients('acme')).toEqual([one, two])
    expect(await store.clients('nobody')).toEqual([])
  })

  test('finds the settled ones among 3,000 partners', async (url) => {
    const { store, journal } = await serve(url)
    await beginNew(journal, batchOf(['a'], { partner: 'open' }))
    const final = await beginNew(journal, batchOf(['b'], { partner: 'final' }))
    await journal.settle(final, [{ position: 0, state: 'unknown', answer: undefined, deadLetter: true }])
    const many = Array.from({ length: 3_000 }, (_, n) => `partner-${n}`)
    const { settled } = await store.snapshot(undefined, ['open', 'final', ...many])
    expect(settled).toEqual(new Set(['final', ...many]))
  })

  test('keeps the first stage of a partner, and counts its time as the time of an unrecorded batch', async (url) => {
    const [one, other] = [await serve(url), await serve(url)]
    await one.store.begin('acme', shadow)
    const [{ nowMs }, { notedMs }] = [await one.store.snapshot(), await one.store.unrecorded('acme')]
    expect(nowMs - (notedMs ?? 0)).toBeLessThan(5_000)
    await other.store.begin('acme', canary(20))
    await other.store.begin('_', canary(30))
    expect((await one.store.snapshot()).begins).toEqual(
      new Map([
        ['acme', shadow],
        ['_', canary(30)],
      ]),
    )
    expect((await one.store.unrecorded('acme')).notedMs).toBe(notedMs)
    const change = changeTo(canary(5), { from: shadow })
    expect(await one.store.propose({ ...change, ...soon, quietMs: 60_000 })).toMatchObject({
      kind: 'early',
    })
  })

  test('refuses to commit a change while a newly registered instance has not acknowledged it', async (url) => {
    const one = await serve(url)
    await one.store.propose({ ...changeTo(shadow), ...soon })
    await one.store.acknowledge(one.instance(), [acknowledged(1)])
    const late = await serve(url)
    expect(await one.store.commit('acme', 1)).toMatchObject({
      kind: 'undrained',
      instances: [{ instance: late.instance(), pid: process.pid, writes: undefined }],
    })
    await late.journal.close()
    expect(await one.store.commit('acme', 1)).toEqual({ kind: 'committed' })
  })

  test('refuses to commit a change if an instance has acknowledged only an earlier change', async (url) => {
    const one = await serve(url)
    await one.store.propose({ ...changeTo(shadow), ...soon })
    await one.store.acknowledge(one.instance(), [acknowledged(1)])
    await one.store.withdraw('acme', 1, 'ada', 'not today')
    expect(await one.store.propose({ ...changeTo(shadow), ...soon })).toEqual({
      kind: 'proposed',
      revision: 2,
    })
    expect(await one.store.commit('acme', 1)).toEqual({ kind: 'gone' })
    expect(await one.store.commit('acme', 2)).toMatchObject({
      kind: 'undrained',
      instances: [{ writes: undefined }],
    })
  })

  test('lets a change expire if it is not committed in time, and then accepts another proposal', async (url) => {
    const one = await serve(url)
    await one.store.propose({ ...changeTo(shadow), ...soon, forMs: 1 })
    await one.store.acknowledge(one.instance(), [acknowledged(1)])
    await vi.waitFor(async () => {
      expect((await one.store.snapshot()).partners.get('acme')).toEqual({
        state: undefined,
        pending: undefined,
      })
    }, 60_000)
    expect(await one.store.commit('acme', 1)).toEqual({ kind: 'gone' })
    expect(await one.store.propose({ ...changeTo(shadow), ...soon })).toEqual({
      kind: 'proposed',
      revision: 2,
    })
    const actions = (await one.store.history({})).map(({ action, revision }) => [action, revision])
    expect(actions).toEqual([['propose', 1], ['expire', 1], ['propose', 2]]) // prettier-ignore
  })

  test('applies a step back at once, and drops the pending change', async (url) => {
    const one = await serve(url)
    expect(await goForward(one, changeTo(shadow))).toBe(1)
    const forward = changeTo(canary(20), { expectedRevision: 1, from: shadow })
    expect(await one.store.propose({ ...forward, ...soon })).toMatchObject({ revision: 2 })
    const back = changeTo(legacy, { expectedRevision: 1, from: shadow, by: 'bob' })
    expect(await one.store.apply(back, 'back')).toEqual({ kind: 'applied', revision: 3 })
    expect(await one.store.commit('acme', 2)).toEqual({ kind: 'gone' })
    expect((await one.store.snapshot()).partners.get('acme')).toMatchObject({
      state: { ...legacy, revision: 3, by: 'bob' },
      pending: undefined,
    })
    expect(await one.store.apply(back, 'back')).toEqual({ kind: 'stale' })
  })

  test('refuses to apply a step forward without a proposal', async (url) => {
    const { store } = await serve(url)
    expect(await store.apply(changeTo(shadow), 'set')).toEqual({ kind: 'forward' })
    expect(await store.history({})).toEqual([])
  })

  test('lets exactly one of several concurrent commands change the stage of a partner', async (url) => {
    const one = await serve(url)
    const commands = await Promise.all([1, 2, 3, 4].map(() => openRolloutStore({ url })))
    onTestFinished(async () => {
      for (const command of commands) await command.close()
    })
    const proposals = await Promise.all(
      commands.map((command, n) => command.propose({ ...changeTo(shadow, { by: `op${n}` }), ...soon })),
    )
    expect(proposals.map(({ kind }) => kind).sort()).toEqual(['pending', 'pending', 'pending', 'proposed'])
    const applied = await Promise.all(
      commands.map((command, n) => command.apply(changeTo(legacy, { by: `op${n}` }), 'set')),
    )
    expect(applied.map(({ kind }) => kind).sort()).toEqual(['applied', 'stale', 'stale', 'stale'])
    // The commands that succeeded wrote their entries one after the other, so the audit trail has no break.
    expect(await one.store.verify()).toMatchObject({ head: { entries: 3 }, broken: undefined })
  })

  test('applies either a commit or a step back, never both, if both arrive at the same time', async (url) => {
    const one = await serve(url)
    const command = await openRolloutStore({ url })
    onTestFinished(() => command.close())
    let revision = await goForward(one, changeTo(shadow))
    for (let round = 0; round < 10; round += 1) {
      const change = changeTo(canary(round + 1), { expectedRevision: revision, from: shadow })
      const proposed = await one.store.propose({ ...change, ...soon })
      const pending = proposed.kind === 'proposed' ? proposed.revision : 0
      await one.store.acknowledge(one.instance(), [acknowledged(pending)])
      const back = changeTo(shadow, { expectedRevision: revision, from: shadow, by: 'bob' })
      const [committed, applied] = await Promise.all([
        one.store.commit('acme', pending),
        command.apply(back, 'back'),
      ])
      expect([committed.kind, applied.kind]).toBeOneOf([['committed', 'stale'], ['gone', 'applied']]) // prettier-ignore
      const { state } = (await command.snapshot()).partners.get('acme') ?? {}
      expect(state?.stage).toBe(committed.kind === 'committed' ? 'canary' : 'shadow')
      revision = state?.revision ?? 0
      if (state?.stage === 'shadow') continue
      const again = { ...back, expectedRevision: revision, from: canary(round + 1) }
      const result = await command.apply(again, 'back')
      revision = result.kind === 'applied' ? result.revision : 0
    }
    expect((await one.store.verify()).broken).toBeUndefined()
  })

  test('refuses canary while a client may resend an unrecorded batch', async (url) => {
    const one = await serve(url)
    await goForward(one, changeTo(shadow))
    const quietMs = 10_000
    const change = { ...changeTo(canary(5), { expectedRevision: 1, from: shadow }), ...soon, quietMs }
    // The partner has been at shadow for less than `quietMs`.
    const early = await one.store.propose(change)
    const sinceMs = (await one.store.snapshot()).partners.get('acme')?.state?.sinceMs ?? 0
    expect(early).toMatchObject({ kind: 'early', untilMs: sinceMs + quietMs })
    expect(await one.store.propose({ ...change, quietMs: 1 })).toMatchObject({
      kind: 'proposed',
      revision: 2,
    })
    await one.store.noteUnrecorded('acme', 5_000)
    await one.store.noteUnrecorded('acme', 7_000)
    const [{ nowMs }, { notedMs = 0 }] = [await one.store.snapshot(), await one.store.unrecorded('acme')]
    expect(nowMs - notedMs).toBeGreaterThanOrEqual(5_000)
    expect(nowMs - notedMs).toBeLessThan(7_000)
    await one.store.acknowledge(one.instance(), [acknowledged(2)])
    expect(await one.store.commit('acme', 2)).toEqual({ kind: 'committed' })
  })

  test('returns only the latest acknowledgements of live instances', async (url) => {
    const [one, other] = [await serve(url), await serve(url)]
    const row = acknowledged(4, { partner: 'acme', revision: 3, writesV2: 7, writesV3: 8 })
    await one.store.acknowledge(one.instance(), [acknowledged(4), { ...row, partner: 'b' }])
    await one.store.acknowledge(one.instance(), [row])
    await other.store.acknowledge(other.instance(), [{ ...row, pendingRevision: undefined }])
    const [first, second] = [one.instance(), other.instance()]
    const said = async (): Promise<unknown[]> =>
      [...(await one.store.snapshot()).acknowledgements].sort(
        (a, b) => a.instance - b.instance || (a.partner < b.partner ? -1 : 1),
      )
    expect(await said()).toEqual([
      { ...row, instance: first },
      { ...row, instance: first, partner: 'b' },
      { ...row, instance: second, pendingRevision: undefined },
    ])
    await other.store.forget(second)
    await other.journal.close()
    expect(await said()).toHaveLength(2)
  })

  test('applies concurrent updates of a stored text one after the other', async (url) => {
    const [one, other] = [await serve(url), await serve(url)]
    expect(await one.store.readText('acme')).toBeUndefined()
    const count = (text = '0'): string => String(Number(text) + 1)
    await Promise.all(
      Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? one : other).store.updateText('acme', count)),
    )
    expect(await other.store.readText('acme')).toBe('20')
  })
})

postgres.test(
  'the store of stages in PostgreSQL waits for a running commit before it reports a change as expired',
  async (url) => {
    const { store } = await serve(url)
    await store.propose({ ...changeTo(shadow), ...soon, forMs: 1 })
    // A commit holds this lock until the transaction has ended.
    const committing = new Client({ connectionString: url })
    await committing.connect()
    await committing.query('begin')
    await committing.query('select pg_advisory_xact_lock(7238519462)')
    let isRead = false
    const reading = store.snapshot().finally(() => (isRead = true))
    await vi.waitFor(async () => {
      const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`
      expect((await committing.query(waiting)).rowCount).toBe(1)
    }, 60_000)
    expect(isRead).toBe(false)
    await committing.query('commit')
    await committing.end()
    expect((await reading).partners.get('acme')).toEqual({ state: undefined, pending: undefined })
  },
)

postgres.test(
  'the store of stages in PostgreSQL waits at a commit for an instance that is registering, and requires its acknowledgement',
  async (url) => {
    const one = await serve(url)
    await one.store.propose({ ...changeTo(shadow), ...soon })
    await one.store.acknowledge(one.instance(), [acknowledged(1)])
    const registering = new Client({ connectionString: url })
    await registering.connect()
    await registering.query('begin')
    await registering.query(
      `insert into journal_instances (host, boot, pid, started, lease_until, lease_ms)
        select 'far', boot, 7, started, lease_until + 60000, lease_ms from journal_instances`,
    )
    const committing = one.store.commit('acme', 1)
    await vi.waitFor(async () => {
      const waiting = `select 1 from pg_locks where not granted and mode = 'ShareLock' and relation = 'journal_instances'::regclass`
      expect((await registering.query(waiting)).rowCount).toBe(1)
    }, 60_000)
    await registering.query('commit')
    await registering.end()
    expect(await committing).toMatchObject({
      kind: 'undrained',
      instances: [{ host: 'far', pid: 7, writes: undefined }],
    })
  },
)
