import { Client } from 'pg'
import { describe, expect, onTestFinished, test, vi } from 'vitest'

import { openJournal } from '../../../src/journal/index.ts'
import { missingPostgres, startPostgres } from '../../support/start-postgres.ts'
import { batchOf, beginNew, confirmed } from '../batches.ts'

const BATCHES = 100
const RECORDS = 30
const keys = Array.from({ length: RECORDS }, (_, position) => `key ${position}`)

describe.skipIf(missingPostgres() !== undefined)('the plans of a connection', () => {
  test('made for empty tables, they read no whole table when batches have filled it', async () => {
    const postgres = await startPostgres()
    onTestFinished(() => postgres.close())
    const url = await postgres.createDatabase()
    const client = new Client({ connectionString: url })
    await client.connect()
    onTestFinished(() => client.end())
    const journal = await openJournal({ url })
    for (let time = 0; time < BATCHES; time += 1) {
      const batch = await beginNew(journal, batchOf(keys))
      await journal.settle(
        batch,
        keys.map((_, position) => confirmed(position)),
      )
    }
    await journal.close()
    // A server process reports what it read when it ends.
    await vi.waitFor(
      async () => {
        const { rows } = await client.query<{ others: number }>(
          `select count(*)::int as others from pg_stat_activity where datname = current_database()
             and pid <> pg_backend_pid() and backend_type = 'client backend'`,
        )
        expect(rows[0]?.others).toBe(0)
      },
      { timeout: 20_000 },
    )
    const { rows } = await client.query<{ name: string; scanned: number; found: number }>(
      `select relname as name, seq_tup_read::int as scanned, idx_scan::int as found from pg_stat_user_tables
       where relname in ('journal_records', 'journal_batches', 'journal_answers', 'journal_payloads')`,
    )
    expect(rows.filter(({ scanned }) => scanned > BATCHES)).toEqual([])
    expect(rows.find(({ name }) => name === 'journal_records')?.found).toBeGreaterThan(BATCHES)
  })
})
