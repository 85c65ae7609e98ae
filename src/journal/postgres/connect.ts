import { Pool, TypeOverrides, types } from 'pg'

/** Connections of one instance: groups of settles, the ordered groups, and questions. */
const MAX_CONNECTIONS = 8

/** Settings of each connection, whatever the defaults of its role say. */
const SETTINGS = {
  // A commit is on the disk before it returns.
  synchronous_commit: 'on',
  // A connection keeps the plans of its statements, and makes them when the tables are nearly empty. Then whole tables are planned to be
  // read, row by row or into a hash, which takes longer with every batch until the server analyses them. All that the journal asks
  // often has an index.
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  // What is planned in spite of that counts as expensive, and would be compiled.
  jit: 'off',
}

/**
 * The pool of a journal. Nothing waits longer than `timeoutMs` for one statement; the server ends a transaction whose client
 * went away, since it may hold the lock that all begin under.
 */
export function connect(url: string, timeoutMs: number): Pool {
  const parsers = new TypeOverrides()
  parsers.setTypeParser(types.builtins.INT8, Number)
  const pool = new Pool({
    connectionString: url,
    max: MAX_CONNECTIONS,
    application_name: 'markbridge',
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
    idle_in_transaction_session_timeout: timeoutMs * 2,
    keepAlive: true,
    options: Object.entries(SETTINGS)
      .map(([name, value]) => `-c ${name}=${value}`)
      .join(' '),
    // Counts, numbers and times are far below 2^53; pg gives bigint as text.
    types: parsers,
  })
  // A connection that breaks is replaced; its user learns of it by the query. One in use may break between two queries.
  pool.on('error', () => undefined).on('connect', (client) => client.on('error', () => undefined))
  return pool
}

/** The address without its password. */
export function placeOf(url: string): string {
  if (!URL.canParse(url)) return 'postgres'
  const { hostname, port, pathname } = new URL(url)
  return `postgres://${hostname}${port === '' ? '' : `:${port}`}${pathname}`
}
