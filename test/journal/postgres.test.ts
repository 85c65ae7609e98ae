import { afterAll, beforeAll, describe } from 'vitest'

import { runs } from '../support/long-run.ts'
import { missingPostgres, startPostgres, type TestPostgres } from '../support/start-postgres.ts'
import { describeJournal } from './contract.ts'

describe.skipIf(missingPostgres() !== undefined)('with a PostgreSQL server', () => {
  let postgres: TestPostgres
  beforeAll(async () => {
    postgres = await startPostgres()
  })
  afterAll(() => postgres.close())

  describeJournal('PostgreSQL', runs(6, 60), () => postgres.createDatabase())
})
