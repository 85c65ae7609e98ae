import { mkdtempSync, rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { Client } from 'pg'
import { expect, onTestFinished, test } from 'vitest'

import { missingPostgres, startPostgres } from '../../support/start-postgres.ts'
import { countOpen } from './count-open.ts'

/** The columns of the journal that it looks at: two batches of process 7, one of process 8. */
const journal = `
  CREATE TABLE journal_instances (id int, pid int);
  CREATE TABLE journal_batches (instance int, open int);
  INSERT INTO journal_instances VALUES (1, 7), (2, 8);
  INSERT INTO journal_batches VALUES (1, 3), (1, 2), (2, 4);`

test('counts what all processes of a file left open', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'markbridge-open-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'journal.db')
  const database = new DatabaseSync(file)
  database.exec(journal)
  database.close()
  expect(await countOpen(`sqlite:${file}`, 7)).toBe(9)
})

test.skipIf(missingPostgres() !== undefined)(
  'counts what one process left open in PostgreSQL, and nothing while it is down',
  async () => {
    const postgres = await startPostgres()
    onTestFinished(() => postgres.close())
    const url = await postgres.createDatabase()
    const client = new Client({ connectionString: url })
    await client.connect()
    await client.query(journal)
    await client.end()
    expect([await countOpen(url, 7), await countOpen(url, 8), await countOpen(url, 9)]).toEqual([5, 4, 0])
    expect(await countOpen('postgres://127.0.0.1:1/none', 7)).toBe(0)
  },
)
