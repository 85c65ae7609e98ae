import { createHmac } from 'node:crypto'

import { type Kysely, sql } from 'kysely'
import { describe, expect } from 'vitest'

import type { JournalTables } from '../../../src/journal/index.ts'
import { macOfEntry, writeHead } from '../../../src/rollout/store/audit-trail.ts'
import type { KnownTrail } from '../../../src/rollout/store/audit-trail.ts'
import {
  fromStageRow,
  type KeptStage,
  type StageRow,
  toStageRow,
} from '../../../src/rollout/store/stage-rows.ts'
import { eachDatabase } from '../../support/each-database.ts'
import {
  canary,
  changeTo,
  goForward,
  keyOf,
  legacy,
  rowsIn,
  run,
  serve,
  type Serving,
  shadow,
  soon,
} from './open-stores.ts'

type Db = Kysely<JournalTables>
const tables = ['rollout_stages', 'rollout_audit', 'rollout_head'] as const
const keys = [keyOf('a')]

async function insert(db: Db, table: string, row: object): Promise<void> {
  await sql`insert into ${sql.table(table)} (${sql.join(Object.keys(row).map((column) => sql.ref(column)))})
    values (${sql.join(Object.values(row))})`.execute(db)
}

/** Copies the tables as a user with read access could, and returns a function that restores them. */
async function copy({ journal: { database } }: Serving): Promise<(db: Db) => Promise<void>> {
  const kept = await Promise.all(tables.map((table) => rowsIn(database.db, table)))
  return async (to) => {
    for (const [at, table] of tables.entries()) {
      await sql`delete from ${sql.table(table)}`.execute(to)
      for (const row of kept[at] ?? []) await insert(to, table, row)
    }
  }
}

async function wipe(db: Db): Promise<void> {
  for (const table of tables) await sql`delete from ${sql.table(table)}`.execute(db)
  await insert(db, 'rollout_head', {
    id: 1,
    entries: 0,
    last_mac: '',
    keyed_from: null,
    partners: 0,
    mac: '',
  })
}

/** Forges all MACs with the key that derives from the salt of the database. */
async function forge(db: Db, stage: string): Promise<void> {
  const meta = await rowsIn<{ name: string; value: string }>(db, 'journal_meta')
  const salt = meta.find(({ name }) => name === 'salt')?.value ?? ''
  const key = createHmac('sha256', Buffer.from(salt, 'hex')).update('markbridge stages').digest()
  let last = ''
  const rows = await rowsIn<Parameters<typeof macOfEntry>[2]>(db, 'rollout_audit')
  for (const row of rows.toSorted((one, other) => one.entry - other.entry)) {
    const content = JSON.stringify({ ...JSON.parse(row.content), to: { ...legacy, stage } })
    last = macOfEntry(key, last, { ...row, content })
    await sql`update rollout_audit set content = ${content}, mac = ${last} where entry = ${row.entry}`.execute(
      db,
    )
  }
  for (const row of await rowsIn<StageRow>(db, 'rollout_stages')) {
    const kept = JSON.parse(row.content) as KeptStage
    const forged = toStageRow(key, { ...kept, state: { ...kept.state, stage: 'v3' } })
    expect(fromStageRow(key, forged)).toBeDefined()
    const { content, mac, partner } = forged
    await sql`update rollout_stages set content = ${content}, mac = ${mac} where partner = ${partner}`.execute(
      db,
    )
  }
  await writeHead(db, key, { entries: rows.length, last_mac: last, keyed_from: null, repaired_ms: null })
}

const forward = { ...changeTo(canary(1), { expectedRevision: 1, from: shadow }), ...soon }
const refused = { code: 'ADP_JOURNAL_DAMAGED' }

/** Starts an instance with keys and takes the partner to shadow. */
async function atShadow(url: string): Promise<Serving> {
  const one = await serve(url, { keys })
  await goForward(one, changeTo(shadow))
  return one
}

async function read({ store }: Serving, known?: KnownTrail) {
  const { trail, partners, damaged } = await store.snapshot(known)
  return { trail, stage: partners.get('acme')?.state?.stage, damaged: [...damaged] }
}

describe.each(eachDatabase())('the trail against an attacker with the database, in %s', (_name, { test }) => {
  test('detects that a trail under the key was deleted', async (url) => {
    const one = await serve(url, { keys })
    // The trail is under the key even before its first row.
    expect((await one.store.verify()).broken).toBeUndefined()
    await wipe(one.journal.database.db)
    expect((await one.store.verify()).broken).toMatchObject({ entry: 0 })
    expect(await one.store.apply(changeTo(legacy, { expectedRevision: 0 }), 'back')).toMatchObject({
      kind: 'applied',
    })
    await wipe(one.journal.database.db)
    const next = await serve(url, { keys })
    expect((await next.store.verify()).broken).toMatchObject({ entry: 0 })
    expect(await read(next)).toEqual({ trail: undefined, stage: undefined, damaged: [] })
    await expect(next.store.propose({ ...forward, ...changeTo(shadow) })).rejects.toMatchObject(refused)
    const back = changeTo(legacy, { expectedRevision: 'damaged', from: shadow })
    expect((await next.store.apply(back, 'back')).kind).toBe('applied')
    expect(await read(next)).toMatchObject({ trail: { entries: 2 }, stage: 'legacy', damaged: [] })
    expect((await next.store.verify()).broken).toBeUndefined()
  })

  test('detects a trail that was forged with the salt, or begun again without a key', async (url) => {
    const one = await atShadow(url)
    const known = (await one.store.snapshot()).trail
    await forge(one.journal.database.db, 'v3')
    const next = await serve(url, { keys })
    for (const { store } of [one, next]) {
      expect((await store.verify()).broken).toMatchObject({ entry: 1 })
      await expect(store.propose(forward)).rejects.toMatchObject(refused)
      expect(await read({ ...one, store }, known)).toEqual({
        trail: undefined,
        stage: undefined,
        damaged: ['acme'],
      })
    }
    // Without the sealed key a new instance has no key. An instance that knows better marks the trail.
    await run(one.journal.database.db, `delete from journal_meta where name = 'mac_key'`)
    await forge(one.journal.database.db, 'v3')
    const last = await serve(url, { keys })
    expect(await read(last, known)).toMatchObject({ trail: undefined, damaged: [] })
    expect((await one.store.verify(known)).broken).toBeDefined()
    await expect(last.store.propose(forward)).rejects.toMatchObject(refused)
  })

  test('detects that the sealed key was deleted, and still allows back', async (url) => {
    const one = await atShadow(url)
    await run(one.journal.database.db, `delete from journal_meta where name = 'mac_key'`)
    const next = await serve(url, { keys })
    expect(await read(next)).toEqual({ trail: undefined, stage: undefined, damaged: ['acme'] })
    expect(await next.store.verify()).toMatchObject({ keyed: false, broken: { entry: 1 } })
    await expect(next.store.propose(forward)).rejects.toMatchObject(refused)
    const back = changeTo(legacy, { expectedRevision: 'damaged', from: shadow })
    expect((await next.store.apply(back, 'back')).kind).toBe('applied')
    expect((await read(next)).stage).toBe('legacy')
    // The instance that has the key notices the forgery and marks it for all others.
    expect(await read(one, (await one.store.snapshot()).trail)).toMatchObject({
      trail: undefined,
      damaged: ['acme'],
    })
    expect(await read(next)).toMatchObject({ trail: undefined })
  })

  test('detects a restored older copy, and marks it for instances that do not know the trail', async (url) => {
    const one = await atShadow(url)
    await goForward(one, changeTo(shadow, { partner: 'other' }))
    await goForward(one, changeTo(canary(5), { expectedRevision: 1, from: shadow }))
    const older = await copy(one)
    await one.store.apply(changeTo(legacy, { expectedRevision: 2, from: canary(5) }), 'back')
    const { trail: known } = await one.store.snapshot()
    await older(one.journal.database.db)

    const unknowing = await serve(url, { keys })
    expect(await read(unknowing)).toMatchObject({ stage: 'canary' })
    expect((await one.store.verify(known)).broken).toMatchObject({ entry: known?.entries })
    expect(await read(one, known)).toEqual({ trail: undefined, stage: undefined, damaged: ['acme'] })
    // Other instances see the mark.
    expect(await read(unknowing)).toEqual({ trail: undefined, stage: undefined, damaged: ['acme'] })
    expect((await unknowing.store.verify()).broken).toBeDefined()
    await expect(unknowing.store.propose(forward)).rejects.toMatchObject(refused)

    const back = changeTo(legacy, { expectedRevision: 'damaged', from: shadow })
    expect((await unknowing.store.apply(back, 'back')).kind).toBe('applied')
    for (const serving of [one, unknowing]) {
      const mended = await serving.store.snapshot(known)
      expect(mended.partners.get('acme')?.state?.stage).toBe('legacy')
      // The revision is higher than any, so an acknowledgement of a lost change counts for no later change.
      expect(mended.partners.get('acme')?.state?.revision).toBeGreaterThan(1_000_000)
      expect([mended.trail === undefined, mended.damaged.size]).toEqual([false, 0])
      expect((await serving.store.verify(mended.trail)).broken).toBeUndefined()
    }
    // Restoring the same copy again is detected again.
    const { trail: latest } = await one.store.snapshot(known)
    await older(one.journal.database.db)
    expect(await read(one, latest)).toMatchObject({ trail: undefined, damaged: ['acme'] })
  })

  test('detects an older row of a stage, even for an instance that does not know the trail', async (url) => {
    const one = await atShadow(url)
    const { db } = one.journal.database
    const [row] = await rowsIn<StageRow>(db, 'rollout_stages')
    await one.store.apply(changeTo(legacy, { expectedRevision: 1, from: shadow }), 'back')
    await sql`update rollout_stages set content = ${row?.content}, mac = ${row?.mac}`.execute(db)
    const unknowing = await serve(url, { keys })
    expect(await read(unknowing)).toMatchObject({ stage: undefined, damaged: ['acme'] })
  })

  test('does not begin a partner at the stage of the file if its row and its part of the trail are gone', async (url) => {
    const one = await atShadow(url)
    const { trail: known } = await one.store.snapshot()
    await wipe(one.journal.database.db)
    expect(await read(one, known)).toMatchObject({ trail: undefined, damaged: ['acme'] })
    const unknowing = await serve(url, { keys })
    const back = changeTo(legacy, { partner: 'other', expectedRevision: 0 })
    expect((await unknowing.store.apply(back, 'back')).kind).toBe('applied')
    for (const { store } of [one, unknowing])
      expect([...(await store.snapshot(known)).damaged]).toEqual(['acme'])
  })

  test('detects forged rows even if the end says that the key counts only from a later row', async (url) => {
    const one = await atShadow(url)
    await forge(one.journal.database.db, 'v3')
    await run(one.journal.database.db, 'update rollout_head set keyed_from = 100')
    const back = changeTo(legacy, { expectedRevision: 'damaged', from: shadow })
    expect((await one.store.apply(back, 'back')).kind).toBe('applied')
    expect(await one.store.verify()).toMatchObject({ broken: { entry: 1 } })
  })

  test('detects an older copy of a trail without keys if a later one is known', async (url) => {
    const one = await serve(url)
    await goForward(one, changeTo(shadow))
    const older = await copy(one)
    await one.store.apply(changeTo(legacy, { expectedRevision: 1, from: shadow }), 'back')
    const { trail: known } = await one.store.snapshot()
    await older(one.journal.database.db)
    expect((await one.store.verify(known)).broken).toMatchObject({ entry: 3 })
    expect(await read(one, known)).toEqual({ trail: undefined, stage: undefined, damaged: ['acme'] })
  })
})
