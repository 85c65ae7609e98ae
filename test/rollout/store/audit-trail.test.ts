import { type Kysely, sql } from 'kysely'
import { describe, expect } from 'vitest'

import type { JournalTables } from '../../../src/journal/index.ts'
import { hashOfRow } from '../../../src/rollout/store/audit-trail.ts'
import { eachDatabase } from '../../support/each-database.ts'
import {
  acknowledged,
  canary,
  changeTo,
  goForward,
  legacy,
  rowsIn,
  run,
  serve,
  type Serving,
  shadow,
  soon,
} from './open-stores.ts'

type Db = Kysely<JournalTables>
interface Row {
  readonly entry: number
  readonly partner: string
  readonly action: string
  readonly content: string
  readonly hash: string
}

/**
 * Starts an instance with the partner acme at shadow and the partner other at legacy, with five entries in the trail. Then runs the
 * statements.
 */
async function changed(url: string, ...statements: readonly string[]): Promise<Serving> {
  const one = await serve(url)
  await goForward(one, changeTo(shadow))
  await goForward(one, changeTo(shadow, { partner: 'other' }))
  await one.store.apply(changeTo(legacy, { partner: 'other', expectedRevision: 1, from: shadow, by: 'eve' }), 'guard') // prettier-ignore
  await run(one.journal.database.db, ...statements)
  return one
}

const trailOf = async (db: Db): Promise<readonly Row[]> =>
  (await rowsIn<Row>(db, 'rollout_audit')).toSorted((one, other) => one.entry - other.entry)

/** Replaces the trail with these rows and computes all hashes again, as anyone who can write to the database could. */
async function rewrite(db: Db, rows: readonly Row[]): Promise<void> {
  await run(db, 'delete from rollout_audit')
  let last = ''
  for (const row of rows) {
    last = hashOfRow(last, row)
    await sql`insert into rollout_audit (entry, partner, action, content, hash)
      values (${row.entry}, ${row.partner}, ${row.action}, ${row.content}, ${last})`.execute(db)
  }
}

const stageOf = async ({ store }: Serving, partner = 'acme') =>
  (await store.snapshot()).partners.get(partner)?.state

const backToLegacy = changeTo(legacy, { expectedRevision: 1, from: shadow })

describe.each(eachDatabase())('the audit trail in %s', (_name, { test }) => {
  for (const [what, statement, broken] of [
    [
      'a changed reason',
      `update rollout_audit set content = replace(content, 'a test', 'x') where entry = 2`,
      { entry: 2, what: 'entry 2 was altered' },
    ],
    [
      'a changed operator of the last entry',
      `update rollout_audit set content = replace(content, 'eve', 'ada') where entry = 5`,
      { entry: 5, what: 'entry 5 was altered' },
    ],
    [
      'a changed stage',
      `update rollout_audit set content = replace(content, 'shadow', 'v3') where entry = 2`,
      { entry: 2, what: 'entry 2 was altered' },
    ],
    [
      'a changed hash',
      `update rollout_audit set hash = '' where entry = 3`,
      { entry: 3, what: 'entry 3 was altered' },
    ],
    [
      'a deleted entry',
      `delete from rollout_audit where entry = 3`,
      { entry: 3, what: 'entry 3 is missing' },
    ],
    [
      'a deleted first entry',
      `delete from rollout_audit where entry = 1`,
      { entry: 1, what: 'entry 1 is missing' },
    ],
    [
      'two swapped entries',
      `update rollout_audit set entry = case entry when 1 then -2 else -1 end where entry < 3; update rollout_audit set entry = -entry where entry < 0`,
      { entry: 1, what: 'entry 1 was altered' },
    ],
    [
      'an added entry',
      `insert into rollout_audit select 6, '', action, content, hash from rollout_audit where entry = 5`,
      { entry: 6, what: 'entry 6 was altered' },
    ],
  ] as const) {
    // prettier-ignore
    test(`verify() detects ${what}, even after a step back`, async (url) => {
      const one = await changed(url, ...statement.split('; '))
      expect((await one.store.verify()).broken).toEqual(broken)
      const { revision = 0 } = (await stageOf(one)) ?? {}
      const back = { ...backToLegacy, expectedRevision: revision }
      expect(await one.store.apply(back, 'back')).toMatchObject({ kind: 'applied' })
      expect(await stageOf(one)).toMatchObject(legacy)
      expect((await one.store.verify()).broken).toEqual(broken)
    })
  }

  test('verify() reports no break after a change of each kind', async (url) => {
    const { store } = await changed(url)
    await store.propose({ ...changeTo(canary(5), { expectedRevision: 1, from: shadow }), ...soon })
    await store.apply(backToLegacy, 'back')
    await store.recordAction('retry', 'ada', 'two dead letters')
    const { head, broken } = await store.verify()
    expect([head.entries, broken]).toEqual([9, undefined])
    expect((await store.snapshot()).trail).toEqual(head)
    expect((await store.history({ limit: 3 })).map(({ action, partner }) => [action, partner])).toEqual([
      ['withdraw', 'acme'],
      ['back', 'acme'],
      ['retry', ''],
    ])
  })

  test('verify() needs the earlier head of the trail to detect that the last entries were deleted', async (url) => {
    const one = await changed(url)
    const { head: known } = await one.store.verify()
    await run(one.journal.database.db, 'delete from rollout_audit where entry > 3')
    expect((await one.store.verify()).broken).toBeUndefined()
    const broken = { entry: 4, what: 'the trail ends after entry 3, but this machine has seen 5 entries' }
    expect((await one.store.verify(known)).broken).toEqual(broken)
    expect((await one.store.snapshot(known)).trail).toBeUndefined()
    expect((await one.store.snapshot()).trail).toMatchObject({ entries: 3 })
    // The deletion stays visible when there are more entries.
    for (let more = 0; more < 3; more += 1) await one.store.recordAction('retry', 'ada', 'more')
    const differs = { entry: 5, what: 'entry 5 differs from the entry that this machine has seen' }
    expect((await one.store.verify(known)).broken).toEqual(differs)
    expect((await one.store.snapshot(known)).trail).toBeUndefined()
  })

  test('verify() needs the earlier head of the trail to detect that the whole trail was rewritten', async (url) => {
    const one = await changed(url)
    const { db } = one.journal.database
    const { head: known } = await one.store.verify()
    const rows = await trailOf(db)
    await rewrite(db, rows.map((row) => ({ ...row, content: row.content.replaceAll('ada', 'bob') }))) // prettier-ignore
    expect((await one.store.verify()).broken).toBeUndefined()
    expect((await one.store.verify(known)).broken).toMatchObject({ entry: 5 })
    expect((await one.store.snapshot(known)).trail).toBeUndefined()
    // Restores the same entries, which have the same hashes as before.
    await rewrite(db, rows)
    expect(await one.store.verify(known)).toEqual({ head: known, broken: undefined })
  })

  for (const [what, content] of [
    ['no JSON', 'x'],
    ['no stage', '{}'],
    ['an unknown stage', `replace(content, '"shadow"', '"beyond"')`],
    ['an impossible revision', `replace(content, '"revision":1', '"revision":4611686018427387904')`],
    ['the stage of another partner', `replace(content, '"acme"', '"other"')`],
  ] as const) {
    // prettier-ignore
    test(`takes the stage of a partner from the latest readable entry of the partner if the last entry has ${what}`, async (url) => {
      const value = content.startsWith('replace') ? content : `'${content}'`
      const one = await changed(url, `update rollout_audit set content = ${value} where entry = 2`)
      // Entry 1 proposed the step of entry 2, so without entry 2 the step is pending again.
      expect((await one.store.snapshot()).partners.get('acme')).toMatchObject({ state: undefined, pending: { revision: 1 } })
      expect(await stageOf(one, 'other')).toMatchObject(legacy)
      expect(await one.store.apply({ ...backToLegacy, expectedRevision: 0 }, 'back')).toMatchObject({ kind: 'applied' })
      expect(await stageOf(one)).toMatchObject(legacy)
    })
  }

  test('never gives a change a revision that an instance has acknowledged, even if the entry with that revision was lost', async (url) => {
    const one = await changed(url)
    await one.store.acknowledge(one.instance(), [acknowledged(8, { revision: 7 })])
    expect(await one.store.apply(backToLegacy, 'back')).toEqual({ kind: 'applied', revision: 9 })
    await run(one.journal.database.db, `delete from rollout_audit where partner = 'acme'`)
    await one.store.acknowledge(one.instance(), [acknowledged(11, { revision: 10 })])
    expect(await one.store.propose({ ...changeTo(shadow), ...soon })).toMatchObject({ revision: 12 })
  })
})
