import { afterAll, beforeAll, describe } from 'vitest'

import { openInspector, openJournal } from '../../src/journal/index.ts'
import { runs } from '../support/long-run.ts'
import { missingPostgres, startPostgres, type TestPostgres } from '../support/start-postgres.ts'
import { describeJournal } from './contract.ts'

describe.skipIf(missingPostgres() !== undefined)('with a server', () => {
  let postgres: TestPostgres
  beforeAll(async () => {
    postgres = await startPostgres()
  })
  afterAll(() => postgres.close())

  describeJournal('PostgreSQL', runs(6, 60), async (work) => {
    const url = await postgres.createDatabase()
    const opened: { close(): Promise<void> }[] = []
    try {
      await work({
        open: async (options = {}) => {
          const journal = await openJournal({ url, ...options })
          opened.push(journal)
          return journal
        },
        inspect: async () => {
          const inspector = await openInspector(url)
          opened.push(inspector)
          return inspector
        },
      })
    } finally {
      for (const journal of opened) await journal.close()
    }
  })
})
