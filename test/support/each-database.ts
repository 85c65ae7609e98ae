import { afterAll, beforeAll, it } from 'vitest'

import { makeFolder } from '../journal/open-sqlite.ts'
import { missingPostgres, startPostgres, type TestPostgres } from './start-postgres.ts'

/** A kind of database that a journal may be in. */
export interface TestDatabase {
  /** The address of a new one. */
  readonly newUrl: () => Promise<string>
  /** A test with a new one; skipped where the database is not installed. */
  readonly test: (what: string, act: (url: string) => Promise<void>) => void
}

/** The databases by name, for `describe.each`; to be called once in a file, whose tests share one server of PostgreSQL. */
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
