import { DatabaseSync } from 'node:sqlite'

import { Client } from 'pg'

/**
 * Counts the records that a killed process has left open, in the journal itself. Only a process with open records was killed at work. With
 * SQLite all processes of the file are gone at this moment. The count only reads, and the next process recovers the file by itself.
 */
export async function countOpen(url: string, pid: number): Promise<number> {
  const isFile = url.startsWith('sqlite:')
  const ofProcess = isFile ? '' : `JOIN journal_instances i ON i.id = b.instance WHERE i.pid = ${pid}`
  const asked = ask(url, `SELECT coalesce(sum(b.open), 0) AS open FROM journal_batches b ${ofProcess}`)
  // The server may be down now. The result is then unknown, so the kill does not count.
  const [row] = isFile ? await asked : await asked.catch(() => [])
  return Number(row?.['open'] ?? 0)
}

/** Describes the open records in a journal without values: their batches, their owners and the number of attempts. */
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
  // A server that crashes meanwhile breaks the connection. The query then fails.
  client.on('error', () => undefined)
  try {
    await client.connect()
    return (await client.query<Record<string, unknown>>(text)).rows
  } finally {
    await client.end().catch(() => undefined)
  }
}
