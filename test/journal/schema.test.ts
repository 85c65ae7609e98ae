import { sql } from 'kysely'
import { expect, it } from 'vitest'

import { openInspector, openJournal } from '../../src/journal/index.ts'
import { batchOf, beginNew, confirmed, statesOf } from './batches.ts'
import { makeFolder, openSqlite } from './open-sqlite.ts'

it('a journal creates its tables in an empty file and reads them after a restart', async () => {
  const file = `${await makeFolder()}/journal.db`
  const first = await openSqlite(file)
  const batch = await beginNew(first.journal, batchOf(['a', 'b'], { name: 'one' }))
  await first.journal.settle(batch, [confirmed(0)])
  await first.journal.close()
  const { journal, store } = await openSqlite(file)
  expect(await statesOf(journal, batch)).toEqual(['confirmed', 'open'])
  expect(await journal.begin(batchOf(['a', 'b'], { name: 'one' }))).toMatchObject({ kind: 'known', batch })
  // The journal stores the salt, so keys have the same hashes after the restart.
  expect(await journal.begin(batchOf(['b']))).toMatchObject({
    after: new Map([[0, [{ batch, position: 1 }]]]),
  })
  const meta = await store.db.selectFrom('journal_meta').selectAll().orderBy('name').execute()
  expect(meta).toEqual([
    { name: 'age', value: expect.stringMatching(/^\d+$/) as unknown },
    { name: 'identity', value: expect.stringMatching(/^[0-9a-f]{32}$/) as unknown },
    { name: 'salt', value: expect.stringMatching(/^[0-9a-f]{32}$/) as unknown },
    { name: 'version', value: '5' },
  ])
})

it.each([
  ['99', /version 99, but .* version 5\. Nothing was changed\. Start the newer program/],
  ['4', /version 4, but .* version 5\. Nothing was changed\. Finish the open records/],
])('a journal of version %s is refused with advice, and stays unchanged', async (version, message) => {
  const file = `${await makeFolder()}/journal.db`
  const { store, journal } = await openSqlite(file)
  await sql`update journal_meta set value = ${version} where name = 'version'`.execute(store.db)
  await journal.close()
  for (let time = 0; time < 2; time += 1) {
    const refused = { code: 'ADP_CONFIGURATION', message: expect.stringMatching(message) as unknown }
    await expect(openJournal({ url: `sqlite:${file}` })).rejects.toMatchObject(refused)
    await expect(openInspector(`sqlite:${file}`)).rejects.toMatchObject(refused)
  }
})

it('a journal is created once if several instances open it at the same moment', async () => {
  // Each round uses a new file, which an instance may find half created, or without its log or its high-water file.
  for (let time = 0; time < 5; time += 1) {
    const file = `${await makeFolder()}/journal.db`
    const journals = await Promise.all([1, 2, 3].map(() => openJournal({ url: `sqlite:${file}` })))
    const batches = await Promise.all(journals.map((journal) => beginNew(journal, batchOf(['a']))))
    expect([...batches].sort()).toEqual([1, 2, 3])
    await Promise.all(journals.map((journal) => journal.close()))
  }
})
