import { readFileSync } from 'node:fs'

import { Pool, type PoolClient, TypeOverrides, types } from 'pg'

import { AdapterError, describeFileError } from '../../errors.ts'
import { memberOf } from '../store-error.ts'

/** What one user of a database differs in from others. */
interface PoolOptions {
  /** How long a connection and a statement may take. */
  readonly timeoutMs: number
  /** Default 8: the connections of one instance for groups and questions. */
  readonly connections?: number
  /** Its name in the server's list of connections. */
  readonly name?: string
  /** In place of or besides the settings of a journal. */
  readonly settings?: Readonly<Record<string, string | number>>
}

/** Settings of each connection, whatever the defaults of its role or its database and the options of its address say. */
const SETTINGS = {
  // A commit is on the disk before it returns.
  synchronous_commit: 'on',
  // A transaction sees what others committed while it waited for a lock.
  default_transaction_isolation: "'read committed'",
  // A connection keeps the plans of its statements, and makes them when the tables are nearly empty. Then whole tables are planned to be
  // read, row by row or into a hash, which takes longer with every batch until the server analyses them. All that the journal asks
  // often has an index.
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  // What is planned in spite of that counts as expensive, and would be compiled.
  jit: 'off',
}

/** Parameters of an address that would take the place of the journal's own. */
const OWN_PARAMETERS = ['query_timeout', 'idle_in_transaction_session_timeout', 'application_name']
const TLS_FILES = { sslrootcert: 'ca', sslcert: 'cert', sslkey: 'key' } as const

/**
 * Creates the pool of a journal or of what else is in its database. Nothing waits longer than `timeoutMs` for one statement; the server ends a transaction whose client
 * went away, since it may hold the lock that all change batches under. Error: `ADP_CONFIGURATION` for an address that cannot be used.
 */
export function connectPostgres(url: string, options: PoolOptions): Pool {
  const { timeoutMs, connections = 8, name = 'markbridge' } = options
  const parsers = new TypeOverrides()
  // Counts, numbers and times are far below 2^53; pg gives bigint as text.
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
    // The statements of a group go to the server without waiting for each other.
    pipeline: true,
    // Parameters of the start would be replaced by `options` of the address, and a pooler may ignore them.
    onConnect: (client): unknown => client.query(settings.join(';')),
    types: parsers,
  })
  // A connection that breaks is replaced; its user learns of it by the query. One in use may break between two queries.
  pool.on('error', () => undefined).on('connect', (client) => client.on('error', () => undefined))
  return pool
}

/**
 * Reads what `pg` connects with. Files are read here, once: `pg` would read them anew for each connection, and one that is gone would end the
 * process. With `sslmode`, certificates are checked in each mode but `disable` and `no-verify`, as `pg` does, which warns of it on standard error.
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
      `The file ${path} that ${name} of journal.url names cannot be read: ${describeFileError(cause)}. Nothing was written. Name a file that the user of the adapter may read.`,
      { cause },
    )
  }
}

/** The address without user, password and parameters. */
export function placeOf(url: string): string {
  if (!URL.canParse(url)) return 'postgres'
  const { hostname, port, pathname } = new URL(url)
  return `postgres://${hostname}${port === '' ? '' : `:${port}`}${pathname}`
}

/** A pooler lends the connection that it took back last, or takes turns: of several tries one shows it. */
const TRIES = 3

/**
 * Sees to it that each connection is one to the server. A pooler of transactions or statements lends one to each of them, so that settings are
 * lost: commits would not be on the disk when they return. Errors: `ADP_CONFIGURATION`; those of the driver.
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

/** A pooler of statements refuses to begin a transaction, as a violation of the protocol. */
const isRefusal = (cause: unknown): boolean => memberOf(cause, 'code') === '08P01'

const pooled = (cause?: unknown): AdapterError =>
  new AdapterError(
    'ADP_CONFIGURATION',
    'journal.url leads to a pooler that lends each transaction another connection to the database. The settings of the journal are lost there, so that ' +
      'marks could be lost or doubled after a power cut. Nothing was written. Name the database server itself in journal.url, or let the pooler keep ' +
      'one connection for each session (PgBouncer: pool_mode = session).',
    { cause },
  )
