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

describe.each(databases)('what was changed by hand in %s', (_name, { newUrl, test }) => {
  /** An instance whose partner acme is at shadow, with five rows in the trail; then the statements are run. */
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
      'another stage',
      `update rollout_stages set content = replace(content, 'shadow', 'v3') where partner = 'acme'`,
    ],
    [
      'another revision',
      `update rollout_stages set content = replace(content, '"revision":1', '"revision":2') where partner = 'acme'`,
    ],
    [
      'the row of another partner',
      `update rollout_stages set (content, mac) = (select content, mac from rollout_stages where partner = 'other') where partner = 'acme'`,
    ],
    [
      'a revision that no row has',
      `update rollout_stages set content = replace(content, '"revision":1', '"revision":4611686018427387904') where partner = 'acme'`,
    ],
    ['no row', `delete from rollout_stages where partner = 'acme'`],
  ] as const) {
    // prettier-ignore
    test(`is never taken for a stage: ${what}`, async () => {
      const { store } = await damaged(statement)
      const { partners, damaged: found } = await store.snapshot()
      expect([[...partners.keys()], [...found]]).toEqual([['other'], ['acme']])
      // The file's stage is not a way around it.
      expect(await store.propose({ ...changeTo(shadow), ...soon })).toEqual({ kind: 'stale' })
      expect((await store.verify()).broken?.what).toBe('the stage of acme is not what the trail says of it')
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
      { entry: 2, what: 'row 2 is not as it was written' },
    ],
    [
      'another operator',
      `update rollout_audit set content = replace(content, 'guard', 'eve') where entry = 5`,
      { entry: 5, what: 'row 5 is not as it was written' },
    ],
    ['a missing row', `delete from rollout_audit where entry = 3`, { entry: 3, what: 'row 3 is missing' }],
    ['a missing begin', `delete from rollout_audit where entry = 1`, { entry: 1, what: 'row 1 is missing' }],
    [
      'a cut-off end',
      `delete from rollout_audit where entry > 3`,
      { entry: 4, what: 'the trail ends after row 3, and it had 5 rows' },
    ],
    [
      'rows that changed places',
      `update rollout_audit set entry = case entry when 1 then -2 else -1 end where entry < 3; update rollout_audit set entry = -entry where entry < 0`,
      { entry: 1, what: 'row 1 is not as it was written' },
    ],
    [
      'a row that was added',
      `insert into rollout_audit select 6, '', action, content, mac from rollout_audit where entry = 5`,
      { entry: 6, what: 'row 6 is not as it was written' },
    ],
    [
      'an end of its own',
      `update rollout_head set entries = 3, last_mac = (select mac from rollout_audit where entry = 3); delete from rollout_audit where entry > 3`,
      { entry: 3, what: 'the end of the trail is not as it was written' },
    ],
    [
      'no end',
      `delete from rollout_head`,
      { entry: 5, what: 'the end of the trail is not as it was written' },
    ],
  ] as const) {
    // prettier-ignore
    test(`is found in the trail: ${what}`, async () => {
      const { store } = await damaged(...statement.split('; '))
      expect((await store.verify()).broken).toEqual(broken)
      // Stages are as they were.
      expect([...(await store.snapshot()).damaged]).toEqual([])
    })
  }

  test('at the end of the trail stops no way back, and stays to be seen', async () => {
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

    test('cannot be made to fit without them', async (url) => {
      const one = await serve(url, { keys: [first] })
      await goForward(one, changeTo(shadow))
      expect(await one.store.verify()).toMatchObject({
        entries: 2,
        keyed: true,
        broken: undefined,
      })
      await expect(serve(url)).rejects.toMatchObject({ code: 'ADP_CONFIGURATION' })
      // Whoever has the database alone takes the key out of it, and so makes MACs that need none.
      await run(one.journal.database.db, `delete from journal_meta where name = 'mac_key'`)
      const forger = await serve(url)
      const back = changeTo(legacy, { expectedRevision: 'damaged', from: shadow, by: 'eve' })
      expect((await forger.store.apply(back, 'back')).kind).toBe('applied')
      expect([...(await one.store.snapshot()).damaged]).toEqual(['acme'])
      expect((await one.store.verify()).broken).toMatchObject({ entry: 3 })
    })

    test('holds over a change of keys, when the old one is gone too', async (url) => {
      for (const keys of [[first], [second, first], [second]]) {
        const one = await serve(url, { keys })
        const expectedRevision = (await one.store.snapshot()).partners.get('acme')?.state?.revision ?? 0
        await one.store.apply(changeTo(legacy, { expectedRevision }), 'set')
        expect(await one.store.verify()).toMatchObject({ keyed: true, broken: undefined })
        await one.journal.close()
      }
    })

    test('are of a trail that begins with them, and one that has begun stays without', async (url) => {
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

    test('are of a trail that has not begun before the journal got them', async (url) => {
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
