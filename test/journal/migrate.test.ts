import { rm } from 'node:fs/promises'

import { sql } from 'kysely'
import { expect, it } from 'vitest'

import { openJournal } from '../../src/journal/index.ts'
import { migrations } from '../../src/journal/schema/migrations.ts'
import { batchOf, beginNew, confirmed, statesOf } from './batches.ts'
import { makeFolder, openSqlite } from './open-sqlite.ts'

it('makes its tables in an empty file, and finds them again', async () => {
  const file = `${await makeFolder()}/journal.db`
  const first = await openSqlite(file)
  const batch = await beginNew(first.journal, batchOf(['a', 'b'], { name: 'one' }))
  await first.journal.settle(batch, [confirmed(0)])
  await first.journal.close()
  const { journal, store } = await openSqlite(file)
  expect(await statesOf(journal, batch)).toEqual(['confirmed', 'open'])
  expect(await journal.begin(batchOf(['a', 'b'], { name: 'one' }))).toMatchObject({ kind: 'known', batch })
  // The salt is the journal's own: keys of before are still the same keys.
  expect(await journal.begin(batchOf(['b']))).toMatchObject({
    after: new Map([[0, [{ batch, position: 1 }]]]),
  })
  const meta = await store.db.selectFrom('journal_meta').selectAll().orderBy('name').execute()
  expect(meta).toEqual([
    { name: 'age', value: expect.stringMatching(/^\d+ 0@\d+$/) as unknown },
    { name: 'identity', value: expect.stringMatching(/^[0-9a-f]{32}$/) as unknown },
    { name: 'salt', value: expect.stringMatching(/^[0-9a-f]{32}$/) as unknown },
    { name: 'schema', value: String(migrations.length) },
  ])
})

it('brings the tables of an older version up to date, and keeps what is in them', async () => {
  const file = `${await makeFolder()}/journal.db`
  const older = await openSqlite(file)
  const batch = await beginNew(older.journal, batchOf(['a']))
  await sql`drop table journal_pace`.execute(older.store.db)
  for (const table of ['stages', 'audit', 'head', 'acks', 'unrecorded', 'evidence'])
    await sql.raw(`drop table rollout_${table}`).execute(older.store.db)
  for (const table of ['periods', 'hashes', 'counts'])
    await sql.raw(`drop table evidence_${table}`).execute(older.store.db)
  await sql`drop index journal_batches_kept`.execute(older.store.db)
  await sql`drop index journal_batches_ids`.execute(older.store.db)
  for (const column of ['owner_id', 'answered', 'retired', 'sum', 'side', 'newcomer', 'retires', 'bytes'])
    await sql.raw(`alter table journal_batches drop column ${column}`).execute(older.store.db)
  for (const column of ['sum', 'key_copy', 'mark'])
    await sql.raw(`alter table journal_records drop column ${column}`).execute(older.store.db)
  await sql`create index journal_batches_ids on journal_batches (ids) where ids is not null`.execute(
    older.store.db,
  )
  // It kept no checksums.
  await sql`update journal_payloads set key_id = null, body = substr(body, 5)`.execute(older.store.db)
  await sql`alter table journal_instances drop column lease_ms`.execute(older.store.db)
  await sql`update journal_meta set value = '1' where name = 'schema'`.execute(older.store.db)
  await sql`drop table journal_commits`.execute(older.store.db)
  await sql`delete from journal_meta where name = 'identity'`.execute(older.store.db)
  await older.journal.close()
  // That version kept no mark; the migration begins one.
  await rm(`${file}.mark`)
  const before = Date.now()
  const { journal, store } = await openSqlite(file)
  expect(await statesOf(journal, batch)).toEqual(['open'])
  expect((await journal.load(batch))?.owner).toBe('')
  expect(await journal.takeOver()).toMatchObject([{ batch }])
  await journal.settle(batch, [confirmed(0)])
  expect(await statesOf(journal, batch)).toEqual(['confirmed'])
  // Its batches cannot be recognised any longer: until none can come again, records are read back before they are posted.
  const [until] = await store.db
    .selectFrom('journal_meta')
    .select('value')
    .where('name', '=', 'read_back_until')
    .execute()
  expect(Number(until?.value) - before).toBeGreaterThanOrEqual(24 * 3_600_000)
  expect(await journal.rateLimit.reserve('key', { calls: 1, windowMs: 10 }, 1)).toEqual([0])
})

it('can be opened by several at the same moment', async () => {
  // Each time a new file: who comes second finds it, its log and its mark half made.
  for (let time = 0; time < 5; time += 1) {
    const file = `${await makeFolder()}/journal.db`
    const journals = await Promise.all([1, 2, 3].map(() => openJournal({ url: `sqlite:${file}` })))
    const batches = await Promise.all(journals.map((journal) => beginNew(journal, batchOf(['a']))))
    expect([...batches].sort()).toEqual([1, 2, 3])
    await Promise.all(journals.map((journal) => journal.close()))
  }
})

it('is refused when a newer version has changed it, and stays as it is', async () => {
  const file = `${await makeFolder()}/journal.db`
  const { store, journal } = await openSqlite(file)
  await sql`update journal_meta set value = '99' where name = 'schema'`.execute(store.db)
  await journal.close()
  for (let time = 0; time < 2; time += 1) {
    await expect(openJournal({ url: `sqlite:${file}` })).rejects.toMatchObject({
      code: 'ADP_CONFIGURATION',
      message:
        `The journal has version 99 and this program knows up to ${migrations.length}: a newer one has changed it. ` +
        'Start that version again, or name another journal.',
    })
  }
})
