import { DatabaseSync } from 'node:sqlite'

import { Client } from 'pg'

/**
 * Counts the records that a killed process has left open, in the journal itself: only then it was killed at work. With SQLite
 * all processes of the file are gone when it asks, and it only reads: the next one recovers the file by itself.
 */
export async function countOpen(url: string, pid: number): Promise<number> {
  if (url.startsWith('sqlite:')) return countInFile(url.slice('sqlite:'.length))
  const client = new Client({ connectionString: url, connectionTimeoutMillis: PATIENCE_MS })
  // A server that is crashed meanwhile breaks the connection; what that means shows in the query.
  client.on('error', () => undefined)
  try {
    await client.connect()
    const { rows } = await client.query<{ open: string }>(
      `SELECT coalesce(sum(b.open), 0) AS open FROM journal_batches b JOIN journal_instances i ON i.id = b.instance
       WHERE i.pid = $1`,
      [pid],
    )
    return Number(rows[0]?.open)
  } catch {
    return 0 // the store is down just now: nobody knows, so the kill does not count
  } finally {
    await client.end().catch(() => undefined)
  }
}

const PATIENCE_MS = 500

function countInFile(file: string): number {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    const row = database.prepare('SELECT coalesce(sum(open), 0) AS open FROM journal_batches').get()
    return Number(row?.['open'])
  } finally {
    database.close()
  }
}
