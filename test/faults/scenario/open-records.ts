import { DatabaseSync } from 'node:sqlite'

import { Client } from 'pg'

/**
 * Counts the records that a killed process has left open, in the journal itself: only then it was killed at work. With SQLite
 * all processes of the file are gone when it asks, and it only reads: the next one recovers the file by itself.
 */
export async function countOpen(url: string, pid: number): Promise<number> {
  const isFile = url.startsWith('sqlite:')
  const ofProcess = isFile ? '' : `JOIN journal_instances i ON i.id = b.instance WHERE i.pid = ${pid}`
  const asked = ask(url, `SELECT coalesce(sum(b.open), 0) AS open FROM journal_batches b ${ofProcess}`)
  // A server may be down just now: nobody knows, so the kill does not count.
  const [row] = isFile ? await asked : await asked.catch(() => [])
  return Number(row?.['open'] ?? 0)
}

/** Describes the records that are open in a journal: their batches, whose they are and how often they were tried. No values. */
export async function describeOpen(url: string): Promise<string> {
  const rows = await ask(
    url,
    `SELECT r.batch, r.position, r.attempts, r.reason, b.instance, i.pid, b.answered
     FROM journal_records r JOIN journal_batches b ON b.id = r.batch LEFT JOIN journal_instances i ON i.id = b.instance
     WHERE r.state = 0 ORDER BY r.batch, r.position LIMIT 10`,
  )
  return rows.map((row) => JSON.stringify(row)).join('; ')
}

async function ask(url: string, text: string): Promise<readonly Record<string, unknown>[]> {
  if (url.startsWith('sqlite:')) {
    const database = new DatabaseSync(url.slice('sqlite:'.length), { readOnly: true })
    try {
      return database.prepare(text).all()
    } finally {
      database.close()
    }
  }
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 500 })
  // A server that is crashed meanwhile breaks the connection; what that means shows in the query.
  client.on('error', () => undefined)
  try {
    await client.connect()
    return (await client.query<Record<string, unknown>>(text)).rows
  } finally {
    await client.end().catch(() => undefined)
  }
}
