import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'

import { connectPostgres } from '../../../src/journal/postgres/connections.ts'
import { type DurableJournal, openInspector, openJournal } from '../../../src/journal/index.ts'
import { missingPooler, startPooler } from '../../support/postgres/start-pooler.ts'
import { missingPostgres, startPostgres, type TestPostgres } from '../../support/start-postgres.ts'
import { batchOf, beginNew } from '../batches.ts'

describe.skipIf(missingPostgres() !== undefined)('a connection of a PostgreSQL journal', () => {
  let postgres: TestPostgres
  let url: string
  beforeAll(async () => {
    postgres = await startPostgres()
    url = await postgres.createDatabase()
  })
  afterAll(() => postgres.close())

  test('makes only its next statement fail if it breaks between two statements, and does not end the process', async () => {
    const pool = connectPostgres(url, { timeoutMs: 5_000 })
    onTestFinished(() => pool.end())
    const client = await pool.connect()
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
    const ended = new Promise((resolve) => client.once('end', resolve))
    const stray: unknown[] = []
    const note = (error: unknown): void => void stray.push(error)
    process.on('uncaughtException', note)
    onTestFinished(() => void process.off('uncaughtException', note))
    await pool.query('select pg_terminate_backend($1)', [rows[0]?.pid])
    await ended
    await expect(client.query('select 1')).rejects.toThrow()
    client.release(true)
    expect(stray).toEqual([])
    expect((await pool.query<{ one: number }>('select 1 as one')).rows).toEqual([{ one: 1 }])
  })

  const ownSettings = ['synchronous_commit', 'default_transaction_isolation', 'enable_seqscan', 'jit']
  const readSettings = async (address: string): Promise<unknown> => {
    const pool = connectPostgres(address, { timeoutMs: 5_000 })
    onTestFinished(() => pool.end())
    const found = ownSettings.map(async (name) => {
      const { rows } = await pool.query<Record<string, string>>(`show ${name}`)
      return rows[0]?.[name]
    })
    return Promise.all(found)
  }

  test('uses the settings of the journal, even if its URL, its database or its role has other settings', async () => {
    const database = await postgres.createDatabase()
    const { pathname } = new URL(database)
    const pool = connectPostgres(database, { timeoutMs: 5_000 })
    for (const name of ownSettings)
      await pool.query(
        `alter database ${pathname.slice(1)} set ${name} to ${name.startsWith('default') ? "'serializable'" : name === 'synchronous_commit' ? 'off' : 'on'}`,
      )
    await pool.end()
    const address = new URL(database)
    address.searchParams.set('options', '-c synchronous_commit=off -c enable_seqscan=on')
    address.searchParams.set('query_timeout', '1')
    for (const one of [database, address.href])
      expect(await readSettings(one)).toEqual(['on', 'read committed', 'off', 'off'])
  })

  test('gives two instances different batch numbers even if the database has the isolation level repeatable read', async () => {
    const database = await postgres.createDatabase()
    const pool = connectPostgres(database, { timeoutMs: 5_000 })
    await pool.query(
      `alter database ${new URL(database).pathname.slice(1)} set default_transaction_isolation to 'repeatable read'`,
    )
    await pool.end()
    const journals = [await openJournal({ url: database }), await openJournal({ url: database })]
    onTestFinished(async () => {
      for (const journal of journals) await journal.close()
    })
    const numbers: number[] = []
    const send = async (journal: DurableJournal, name: string): Promise<void> => {
      for (let count = 0; count < 50; count += 1)
        numbers.push(await beginNew(journal, batchOf(['a'], { name: `${name} ${count}` })))
    }
    await Promise.all(
      journals.flatMap((journal, index) => ['x', 'y'].map((one) => send(journal, `${one} ${index}`))),
    )
    expect(new Set(numbers).size).toBe(200)
  })

  describe.skipIf(missingPooler() !== undefined)('through a pooler', () => {
    test.each(['transaction', 'statement'] as const)('is refused if the pooler pools by %s', async (mode) => {
      const through = await startPooler(await postgres.createDatabase(), mode)
      for (const open of [() => openJournal({ url: through }), () => openInspector(through)])
        await expect(open()).rejects.toMatchObject({
          code: 'ADP_CONFIGURATION',
          message: expect.stringMatching(
            /^journal.url leads to a pooler .* Nothing was written. .*pool_mode = session/,
          ) as unknown,
        })
    })

    test('uses the settings of the journal if the pooler pools by session', async () => {
      const through = await startPooler(await postgres.createDatabase(), 'session')
      expect(await readSettings(through)).toEqual(['on', 'read committed', 'off', 'off'])
      const journal = await openJournal({ url: through })
      expect(await beginNew(journal, batchOf(['a']))).toBe(1)
      await journal.close()
    })
  })
})
