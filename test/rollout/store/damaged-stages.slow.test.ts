import { describe, expect } from 'vitest'

import { eachDatabase } from '../../support/each-database.ts'
import {
  canary,
  changeTo,
  goForward,
  keyOf,
  legacy,
  run,
  serve,
  type Serving,
  shadow,
  soon,
} from './open-stores.ts'

const databases = eachDatabase()

describe.each(databases)('the store of stages after a change by hand, in %s', (_name, { newUrl, test }) => {
  /** Starts an instance with partner acme at shadow and five rows in the trail, then runs the statements. */
  async function damaged(...statements: readonly string[]): Promise<Serving> {
    const one = await serve(await newUrl())
    await goForward(one, changeTo(shadow))
    await goForward(one, changeTo(shadow, { partner: 'other' }))
    const lower = { partner: 'other', expectedRevision: 1, from: shadow, by: 'guard' } as const
    await one.store.apply(changeTo(legacy, lower), 'guard')
    await run(one.journal.database.db, ...statements)
    return one
  }
  for (const [what, statement] of [
    [
      'a row with another stage',
      `update rollout_stages set content = replace(content, 'shadow', 'v3') where partner = 'acme'`,
    ],
    [
      'a row with another revision',
      `update rollout_stages set content = replace(content, '"revision":1', '"revision":2') where partner = 'acme'`,
    ],
    [
      'a row copied from another partner',
      `update rollout_stages set (content, mac) = (select content, mac from rollout_stages where partner = 'other') where partner = 'acme'`,
    ],
    [
      'a row with an impossible revision',
      `update rollout_stages set content = replace(content, '"revision":1', '"revision":4611686018427387904') where partner = 'acme'`,
    ],
    ['a deleted row', `delete from rollout_stages where partner = 'acme'`],
  ] as const) {
    // prettier-ignore
    test(`reports ${what} as damaged, serves no stage by it, and lets back repair it`, async () => {
      const { store } = await damaged(statement)
      const { partners, damaged: found } = await store.snapshot()
      expect([[...partners.keys()], [...found]]).toEqual([['other'], ['acme']])
      // A proposal that trusts the configuration file must not bypass the damage.
      expect(await store.propose({ ...changeTo(shadow), ...soon })).toEqual({ kind: 'stale' })
      expect((await store.verify()).broken?.what).toMatch(/stage of acme/)
      // The kill switch still works.
      const back = changeTo(legacy, { expectedRevision: 'damaged', from: shadow })
      expect(await store.apply({ ...back, to: canary(1) }, 'set')).toEqual({ kind: 'forward' })
      expect(await store.apply(back, 'back')).toMatchObject({ kind: 'applied' })
      const mended = await store.snapshot()
      expect([mended.partners.get('acme')?.state?.stage, mended.damaged.size]).toEqual(['legacy', 0])
      expect((await store.verify()).broken).toBeUndefined()
    })
  }

  for (const [what, statement, broken] of [
    [
      'a changed reason',
      `update rollout_audit set content = replace(content, 'a test', 'x') where entry = 2`,
      { entry: 2, what: 'row 2 was altered' },
    ],
    [
      'a changed operator',
      `update rollout_audit set content = replace(content, 'guard', 'eve') where entry = 5`,
      { entry: 5, what: 'row 5 was altered' },
    ],
    ['a deleted row', `delete from rollout_audit where entry = 3`, { entry: 3, what: 'row 3 is missing' }],
    [
      'a deleted first row',
      `delete from rollout_audit where entry = 1`,
      { entry: 1, what: 'row 1 is missing' },
    ],
    [
      'deleted last rows',
      `delete from rollout_audit where entry > 3`,
      { entry: 4, what: 'trail ends after row 3' },
    ],
    [
      'two swapped rows',
      `update rollout_audit set entry = case entry when 1 then -2 else -1 end where entry < 3; update rollout_audit set entry = -entry where entry < 0`,
      { entry: 1, what: 'row 1 was altered' },
    ],
    [
      'an added row',
      `insert into rollout_audit select 6, '', action, content, mac from rollout_audit where entry = 5`,
      { entry: 6, what: 'row 6 was altered' },
    ],
    [
      'a shortened trail with a forged end',
      `update rollout_head set entries = 3, last_mac = (select mac from rollout_audit where entry = 3); delete from rollout_audit where entry > 3`,
      { entry: 3, what: 'end of the trail was altered' },
    ],
    ['a deleted end', `delete from rollout_head`, { entry: 5, what: 'end of the trail was altered' }],
  ] as const) {
    // prettier-ignore
    test(`verify finds ${what} in the trail and leaves the stages alone`, async () => {
      const { store } = await damaged(...statement.split('; '))
      const what = expect.stringContaining(broken.what) as unknown
      expect((await store.verify()).broken).toEqual({ ...broken, what })
      // The stages themselves are undamaged.
      expect([...(await store.snapshot()).damaged]).toEqual([])
    })
  }

  test('refuses steps forward if the end of the trail is damaged, and repairs the end on back', async () => {
    const { store } = await damaged('delete from rollout_head')
    const forward = changeTo(canary(1), { expectedRevision: 1, from: shadow })
    await expect(store.propose({ ...forward, ...soon })).rejects.toMatchObject({
      code: 'ADP_JOURNAL_DAMAGED',
    })
    const back = changeTo(legacy, { expectedRevision: 1, from: shadow })
    expect(await store.apply(back, 'back')).toEqual({ kind: 'applied', revision: 2 })
    expect((await store.history({})).slice(-2).map(({ action }) => action)).toEqual(['repair', 'back'])
    expect((await store.verify()).broken).toBeUndefined()
  })

  describe('with keys', () => {
    const [first, second] = [keyOf('a'), keyOf('b')]

    test('detects a trail that was continued without the key', async (url) => {
      const one = await serve(url, { keys: [first] })
      await goForward(one, changeTo(shadow))
      expect(await one.store.verify()).toMatchObject({
        entries: 2,
        keyed: true,
        broken: undefined,
      })
      await expect(serve(url)).rejects.toMatchObject({ code: 'ADP_CONFIGURATION' })
      // An attacker with the database alone deletes the key and so makes MACs that need none.
      await run(one.journal.database.db, `delete from journal_meta where name = 'mac_key'`)
      const forger = await serve(url)
      const back = changeTo(legacy, { expectedRevision: 'damaged', from: shadow, by: 'eve' })
      expect((await forger.store.apply(back, 'back')).kind).toBe('applied')
      expect([...(await one.store.snapshot()).damaged]).toEqual(['acme'])
      expect((await one.store.verify()).broken).toMatchObject({ entry: 3 })
    })

    test('verifies the trail after a change of keys, even once the old key is gone', async (url) => {
      for (const keys of [[first], [second, first], [second]]) {
        const one = await serve(url, { keys })
        const expectedRevision = (await one.store.snapshot()).partners.get('acme')?.state?.revision ?? 0
        await one.store.apply(changeTo(legacy, { expectedRevision }), 'set')
        expect(await one.store.verify()).toMatchObject({ keyed: true, broken: undefined })
        await one.journal.close()
      }
    })

    test('keeps a trail without a key if it began before the journal got keys', async (url) => {
      const before = await serve(url)
      const unkeyed = { keyed: false, broken: undefined }
      expect(await before.store.verify()).toMatchObject({ entries: 0, ...unkeyed })
      await goForward(before, changeTo(shadow))
      expect(await before.store.verify()).toMatchObject({ entries: 2, ...unkeyed })
      await before.journal.close()
      const after = await serve(url, { keys: [first] })
      expect((await after.store.snapshot()).partners.get('acme')?.state).toMatchObject(shadow)
      await after.store.apply(changeTo(legacy, { expectedRevision: 1, from: shadow }), 'back')
      expect(await after.store.verify()).toMatchObject({ entries: 3, ...unkeyed })
    })

    test('puts an empty trail under the key once the journal has keys', async (url) => {
      const before = await serve(url)
      await before.store.snapshot()
      await before.journal.close()
      const after = await serve(url, { keys: [first] })
      expect(await after.store.verify()).toMatchObject({
        entries: 0,
        keyed: true,
        broken: undefined,
      })
    })
  })
})
