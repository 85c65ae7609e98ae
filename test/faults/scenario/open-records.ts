import { DatabaseSync } from 'node:sqlite'

import { Client } from 'pg'

/**
 * Counts the records that a killed process left open in its journal. A kill counts as "at work" only if the process left open records. With
 * SQLite no process has the file open at this moment. The query only reads, so the next process still has to recover the file.
 */
export async function countOpen(url: string, pid: number): Promise<number> {
  const isFile = url.startsWith('sqlite:')
  const ofProcess = isFile ? '' : `JOIN journal_instances i ON i.id = b.instance WHERE i.pid = ${pid}`
  const asked = ask(url, `SELECT coalesce(sum(b.open), 0) AS open FROM journal_batches b ${ofProcess}`)
  // The PostgreSQL server may be down now. Its open records are then unknown, and the kill does not count as "at work".
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
  // If the server crashes, the connection emits an error, which would end this process without a listener. The query fails in any case.
  client.on('error', () => undefined)
  try {
    await client.connect()
    return (await client.query<Record<string, unknown>>(text)).rows
  } finally {
    await client.end().catch(() => undefined)
  }
}
