import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'

import { connect } from '../../../src/journal/postgres/store.ts'
import { missingPostgres, startPostgres, type TestPostgres } from '../../support/start-postgres.ts'

describe.skipIf(missingPostgres() !== undefined)('the connections of a journal', () => {
  let postgres: TestPostgres
  let url: string
  beforeAll(async () => {
    postgres = await startPostgres()
    url = await postgres.createDatabase()
  })
  afterAll(() => postgres.close())

  test('break between two statements: the next statement fails, and the process lives on', async () => {
    const pool = connect(url, 5_000)
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
})
