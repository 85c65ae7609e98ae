import { readFileSync } from 'node:fs'

import { Pool, type PoolClient, TypeOverrides, types } from 'pg'

import { AdapterError, describeFileError } from '../../errors.ts'
import { memberOf } from '../store-error.ts'

interface PoolOptions {
  /** The timeout for a connection and for a statement, in milliseconds. */
  readonly timeoutMs: number
  /** Maximum number of connections. Default 8, which is enough for the group commits and queries of one instance. */
  readonly connections?: number
  /** The name that the server's list of connections shows. Default `markbridge`. */
  readonly name?: string
  /** Settings that are added to the journal's settings or replace them. */
  readonly settings?: Readonly<Record<string, string | number>>
}

/** Settings of each connection. These settings override the defaults of the role and the database, and the options of the URL. */
const SETTINGS = {
  // Makes a commit return only once it is on the disk.
  synchronous_commit: 'on',
  // Lets a transaction that waited for a lock see what other transactions committed meanwhile.
  default_transaction_isolation: "'read committed'",
  // Makes PostgreSQL use an index; every frequent query of the journal has a suitable index. PostgreSQL caches plans per connection and
  // makes them while the tables are nearly empty. Without these settings the plans would scan or hash whole tables, and queries would take
  // longer with every batch.
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  // Turns just-in-time compilation off. With the settings above, a plan that needs a scan has such a high estimated cost that PostgreSQL
  // would compile the plan each time.
  jit: 'off',
}

/** URL parameters that would override the journal's own parameters. */
const OWN_PARAMETERS = ['query_timeout', 'idle_in_transaction_session_timeout', 'application_name']
const TLS_FILES = { sslrootcert: 'ca', sslcert: 'cert', sslkey: 'key' } as const

/**
 * Creates the connection pool of a journal, or of other data in its database. No statement waits longer than `timeoutMs`. The server ends a
 * transaction whose client has disappeared, because the transaction may hold the lock that every change of a batch needs. Throws
 * `ADP_CONFIGURATION` for a URL that cannot be used.
 */
export function connectPostgres(url: string, options: PoolOptions): Pool {
  const { timeoutMs, connections = 8, name = 'markbridge' } = options
  const parsers = new TypeOverrides()
  // Converts bigint, which `pg` returns as text, to numbers. All counts, numbers and times of the journal are far below 2^53.
  parsers.setTypeParser(types.builtins.INT8, Number)
  const own = { idle_in_transaction_session_timeout: timeoutMs * 2, ...options.settings }
  const settings = Object.entries({ ...SETTINGS, ...own }).map(
    ([setting, value]) => `set ${setting} = ${value}`,
  )
  const pool = new Pool({
    ...toAddress(url),
    max: connections,
    application_name: name,
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
    keepAlive: true,
    // Sends the statements of a group without waiting for earlier results.
    pipeline: true,
    // Settings are sent as a query, because the `options` of the URL would override startup parameters, and a pooler may ignore startup parameters.
    onConnect: (client): unknown => client.query(settings.join(';')),
    types: parsers,
  })
  // Ignores the event of a broken connection. The pool replaces an idle connection, and on any other connection the next query fails.
  pool.on('error', () => undefined).on('connect', (client) => client.on('error', () => undefined))
  return pool
}

/**
 * Converts a URL to the connection options of `pg`. Certificate files are read once here: `pg` would read them for each connection, and a
 * missing file would end the process. With `sslmode`, certificates are checked unless the mode is `disable` or `no-verify`. `pg` behaves in
 * the same way, but prints a warning.
 */
function toAddress(url: string): { readonly connectionString: string; readonly ssl?: object | boolean } {
  const address = new URL(url)
  const { searchParams } = address
  for (const name of OWN_PARAMETERS) searchParams.delete(name)
  const mode = searchParams.get('sslmode')
  const files = Object.entries(TLS_FILES).flatMap(([name, member]) => {
    const path = searchParams.get(name)
    return path === null ? [] : [[member, readFile(name, path)] as const]
  })
  if (mode === null && files.length === 0) return { connectionString: address.href }
  for (const name of ['ssl', 'sslmode', ...Object.keys(TLS_FILES)]) searchParams.delete(name)
  const connectionString = address.href
  if (mode === 'disable') return { connectionString, ssl: false }
  return { connectionString, ssl: { ...Object.fromEntries(files), rejectUnauthorized: mode !== 'no-verify' } }
}

function readFile(name: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw new AdapterError(
      'ADP_CONFIGURATION',
      `The file ${path} that the parameter ${name} of journal.url names cannot be read: ${describeFileError(cause)}. Nothing was written. Name a file that the user of the adapter may read.`,
      { cause },
    )
  }
}

export function placeOf(url: string): string {
  if (!URL.canParse(url)) return 'postgres'
  const { hostname, port, pathname } = new URL(url)
  return `postgres://${hostname}${port === '' ? '' : `:${port}`}${pathname}`
}

/**
 * Number of attempts to detect a pooler. A pooler may by chance lend both clients the same connections again, so a single attempt may miss
 * it.
 */
const TRIES = 3

/**
 * Checks that each connection leads to one server process. A pooler in transaction or statement mode lends a server connection for each
 * transaction or statement, so that settings are lost and a commit might not be on the disk when it returns. Throws `ADP_CONFIGURATION` and
 * the errors of the driver.
 */
export async function expectSessions(pool: Pool): Promise<void> {
  const clients: PoolClient[] = []
  let isKept = false
  try {
    const [one, other] = [await pool.connect(), await pool.connect()]
    clients.push(one, other)
    for (let count = 0; count < TRIES; count += 1) {
      const own = await serverProcessOf(one)
      await other.query('begin').catch((cause: unknown) => {
        throw isRefusal(cause) ? pooled(cause) : cause
      })
      if ((await serverProcessOf(other)) === own || (await serverProcessOf(one)) !== own) throw pooled()
      await other.query('commit')
    }
    isKept = true
  } finally {
    for (const client of clients) client.release(!isKept)
  }
}

async function serverProcessOf(client: PoolClient): Promise<number | undefined> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  return rows[0]?.pid
}

/** Returns true if a pooler in statement mode refused to begin a transaction, which the pooler reports as a protocol violation. */
const isRefusal = (cause: unknown): boolean => memberOf(cause, 'code') === '08P01'

const pooled = (cause?: unknown): AdapterError =>
  new AdapterError(
    'ADP_CONFIGURATION',
    'journal.url leads to a pooler that gives each transaction another connection to the database. The settings of the journal are lost there, so that ' +
      'marks could be lost or doubled after a power cut. Nothing was written. Name the database server itself in journal.url, or let the pooler keep ' +
      'one connection for each session (PgBouncer: pool_mode = session).',
    { cause },
  )
