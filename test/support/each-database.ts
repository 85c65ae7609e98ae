import { afterAll, beforeAll, it } from 'vitest'

import { makeFolder } from '../journal/open-sqlite.ts'
import { missingPostgres, startPostgres, type TestPostgres } from './start-postgres.ts'

export interface TestDatabase {
  /** Returns the URL of a new database. */
  readonly newUrl: () => Promise<string>
  /** Defines a test with a new database. The test is skipped if the database is not installed. */
  readonly test: (what: string, act: (url: string) => Promise<void>) => void
}

/** Returns the databases by name, for `describe.each`. Call this once per file, because the tests of a file share one PostgreSQL server. */
export function eachDatabase(): readonly [
  sqlite: readonly [name: 'SQLite', database: TestDatabase],
  postgres: readonly [name: 'PostgreSQL', database: TestDatabase],
] {
  let server: TestPostgres | undefined
  const isMissing = missingPostgres() !== undefined
  beforeAll(async () => {
    if (!isMissing) server = await startPostgres()
  })
  afterAll(() => server?.close())
  const over = (newUrl: TestDatabase['newUrl'], isSkipped: boolean): TestDatabase => ({
    newUrl,
    test: (what, act) => {
      it.skipIf(isSkipped)(what, async () => act(await newUrl()))
    },
  })
  return [
    ['SQLite', over(async () => `sqlite:${await makeFolder()}/journal.db`, false)],
    ['PostgreSQL', over(async () => (await server?.createDatabase()) ?? '', isMissing)],
  ]
}
