import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'

import { type DurableJournal, type Journal, openJournal } from '../../src/journal/index.ts'
import { openStore } from '../../src/journal/open-store.ts'
import { purge } from '../../src/journal/retention.ts'
import { createRolloutStore } from '../../src/rollout/store/rollout-store.ts'
import { missingPostgres, startPostgres, type TestPostgres } from '../support/start-postgres.ts'
import { batchOf, beginNew, confirmed, START_MS } from './batches.ts'

/** The number of parked records of one key in the smaller and in the larger journal. */
const [FEW, MANY] = [100, 2_100]
/** The number of records of other keys, which make the server prefer an index. */
const OTHERS = 30_000
/** The number of repetitions. With so many repetitions, a cost of one row per parked record is visible despite other reads. */
const TIMES = 20
const HOUR_MS = 3_600_000

/** Work that is repeated. `newest` is the batch of the newest parked record, and `time` counts the repetitions from 0. */
type Work = (journal: Journal, newest: number, time: number) => Promise<unknown>

/**
 * Fills a journal with many final records of other keys, and with `live` parked records of key `a`, each in a batch of its own.
 */
async function fill(client: Client, journal: Journal, live: number): Promise<number> {
  const batch = await beginNew(journal, batchOf(['a', 'b']))
  await journal.settle(batch, [
    { position: 0, state: 'parked', answer: 'later', retry: START_MS },
    confirmed(1),
  ])
  await client.query(
    `insert into journal_batches (id, partner, owner, content, received_ms, instance, open, confirmed, refused, unknown, parked, not_applied, active, on_v2, newcomer, retires, bytes)
     select n, partner, owner, content, received_ms, instance, 0, 0, 0, 0, 1, 0, 1, 0, 0, '[]', 1 from journal_batches, generate_series(2, ${live}) n`,
  )
  await client.query(
    `insert into journal_records (batch, position, key, state, active, retry)
     select b.id, r.position, r.key, r.state, r.active, r.retry from journal_batches b, journal_records r
     where b.id > r.batch and r.position = 0`,
  )
  await client.query(
    `insert into journal_records (batch, position, key, state, active)
     select r.batch, n, md5(n::text), r.state, 0
     from journal_records r, generate_series(2, ${OTHERS}) n where r.position = 1`,
  )
  await client.query(`update journal_commits set last_batch = ${live}`)
  await client.query('analyze')
  const { rows } = await client.query<{ newest: number }>(
    'select max(id)::int as newest from journal_batches',
  )
  return rows[0]?.newest ?? NaN
}

/** Returns how many index entries and table rows all connections of a database have read so far. */
async function countRead(client: Client): Promise<number> {
  // Waits until the other server processes have ended, because a process reports its last reads only then.
  await vi.waitFor(
    async () => {
      const { rows } = await client.query<{ others: number }>(
        `select count(*)::int as others from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`,
      )
      expect(rows[0]?.others).toBe(0)
    },
    { timeout: 60_000 },
  )
  const { rows } = await client.query<{ read: number }>(
    `select (select sum(seq_tup_read) from pg_stat_user_tables where relname like 'journal%')::int
       + (select sum(idx_tup_read) from pg_stat_user_indexes where relname like 'journal%')::int as read`,
  )
  return rows[0]?.read ?? NaN
}

describe.skipIf(missingPostgres() !== undefined)('the number of rows that PostgreSQL reads', () => {
  let postgres: TestPostgres
  beforeAll(async () => {
    postgres = await startPostgres()
  })
  afterAll(() => postgres.close())

  interface Filled {
    readonly url: string
    readonly newest: number
  }
  const filled = new Map<number, Filled>()
  /** Returns a journal with `live` parked records of key `a`. Creates the journal once, because each test works on a copy. */
  const fillOnce = async (live: number): Promise<Filled> => {
    const before = filled.get(live)
    if (before !== undefined) return before
    const url = await postgres.createDatabase()
    const client = new Client({ connectionString: url })
    await client.connect()
    const journal = await openJournal({ url })
    const made = { url, newest: await fill(client, journal, live) }
    await journal.close()
    // A database can be copied only after all server processes of its connections have ended.
    await countRead(client)
    await client.end()
    filled.set(live, made)
    return made
  }
  const readBy = async (live: number, work: Work): Promise<number> => {
    const { url: original, newest } = await fillOnce(live)
    const url = await postgres.createDatabase(original)
    const client = new Client({ connectionString: url })
    await client.connect()
    try {
      // Without this statement the journal would recognise and refuse the copy.
      await client.query("delete from journal_meta where name = 'database'")
      const before = await countRead(client)
      // Opens the journal once without work, to measure the rows that opening it reads.
      await (await openJournal({ url })).close()
      const opened = await countRead(client)
      const journal = await openJournal({ url })
      for (let time = 0; time < TIMES; time += 1) await work(journal, newest, time)
      await journal.close()
      return (await countRead(client)) - opened - (opened - before)
    } finally {
      await client.end()
    }
  }
  const expectGrowth = async (perLiveRecord: number, work: Work): Promise<void> => {
    const more = (await readBy(MANY, work)) - (await readBy(FEW, work))
    // One row per parked record and repetition would be 40,000 rows. Opening and closing the journal reads only a few thousand.
    expect(more).toBeLessThan(perLiveRecord * (MANY - FEW) + 10_000)
  }
  const parked = { position: 0, state: 'parked', answer: 'later', retry: START_MS } as const

  it.each<readonly [string, number, Work]>([
    ['begun', 0, (journal) => beginNew(journal, batchOf(['a']))],
    [
      'settled without superseding a record',
      0,
      async (journal) =>
        journal.settle(await beginNew(journal, batchOf(['b'])), [{ ...parked, state: 'refused' }]),
    ],
    [
      'reopened',
      0,
      async (journal, newest) => {
        await journal.reopen(newest, [0], undefined)
        await journal.settle(newest, [parked])
      },
    ],
    [
      'checked for newer records that wait for it',
      0,
      async (journal) => {
        const batch = await beginNew(journal, batchOf(['a']))
        await journal.blocking([batch])
      },
    ],
    [
      'checked for older records that it waits for',
      0,
      async (journal) => {
        const batch = await beginNew(journal, batchOf(['a']))
        await journal.olderOpen([{ batch, position: 0 }])
      },
    ],
    [
      'confirmed while newer records are parked',
      0,
      async (journal, _newest, time) => {
        expect((await journal.reopen(time + 1, [0], undefined)).after.size).toBe(1)
        await journal.settle(time + 1, [confirmed(0)])
      },
    ],
    // PostgreSQL reads each superseded record in order to update the record once.
    [
      'confirmed and all older records become superseded',
      30,
      async (journal) => journal.settle(await beginNew(journal, batchOf(['a'])), [confirmed(0)]),
    ],
  ])(
    'does not grow with the number of unchanged parked records of a key if a record of that key is %s',
    (_, perLiveRecord, work) => expectGrowth(perLiveRecord, work),
  )

  it('does not grow with the number of records that are due for a retry when the stages of all partners are read', async () => {
    const left = Array.from({ length: 100 }, (_, n) => `partner-${n}`)
    await expectGrowth(0, (journal) =>
      createRolloutStore((journal as DurableJournal).database).snapshot(undefined, left),
    )
  })

  it('does not grow with the number of older batches without a request when a purge deletes requests', async () => {
    const readFor = async (kept: number): Promise<number> => {
      const url = await postgres.createDatabase()
      await (await openJournal({ url })).close()
      const client = new Client({ connectionString: url })
      await client.connect()
      // Adds `kept` batches whose requests are deleted already, and after them MANY batches whose requests the purge deletes.
      await client.query(
        `insert into journal_batches (id, partner, owner, content, received_ms, instance, open, confirmed, refused, unknown, parked, not_applied, active, on_v2, newcomer, retires, bytes)
         select n, 'acme', 'acme', '', n, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, '[]', case when n <= ${kept} then 0 else 1 end from generate_series(1, ${kept + MANY}) n`,
      )
      await client.query(
        `insert into journal_payloads (batch, body) select id, '' from journal_batches where bytes > 0`,
      )
      await client.query('analyze')
      const before = await countRead(client)
      const store = openStore(url, { timeoutMs: 60_000, wallMs: () => 0 })
      const periods = { replayForMs: HOUR_MS, keepRecordsMs: 24 * HOUR_MS }
      expect(await purge(store, periods, 2 * HOUR_MS, Number.MAX_SAFE_INTEGER)).toEqual({
        expired: 0,
        payloads: MANY,
        batches: 0,
      })
      await store.close()
      const read = (await countRead(client)) - before
      await client.end()
      return read
    }
    // One scan of all batches for each fifty deleted requests would be a million rows.
    expect((await readFor(30_000)) - (await readFor(100))).toBeLessThan(10_000)
  })

  it('does not grow with the number of records per key when a large batch is settled', async () => {
    const readFor = async (keys: number): Promise<number> => {
      const url = await postgres.createDatabase()
      const client = new Client({ connectionString: url })
      await client.connect()
      const journal = await openJournal({ url })
      const names = Array.from({ length: MANY }, (_, position) => `key ${position % keys}`)
      const batch = await beginNew(journal, batchOf(names, { side: 'v2' }))
      const lost = { state: 'unknown', answer: undefined, retry: 'resend' } as const
      await journal.settle(
        batch,
        names.map((_, position) => ({ position, ...lost })),
      )
      await journal.close()
      const read = await countRead(client)
      await client.end()
      return read
    }
    const [one, few, many] = [await readFor(1), await readFor(10), await readFor(MANY)]
    // One row per pair of records would be two million rows.
    expect(Math.max(one, few, many)).toBeLessThan(60 * MANY)
  })
})
