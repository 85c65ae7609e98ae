import { Pool, TypeOverrides, types } from 'pg'

/** Connections of one instance: groups of settles, the ordered groups, and questions. */
const MAX_CONNECTIONS = 8

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
    // A commit is on the disk before it returns, whatever the role's own default says.
    options: '-c synchronous_commit=on',
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
