import { DatabaseSync } from 'node:sqlite'

import { Client } from 'pg'

/** Open records with their batch, and the process that has them. */
const openRecords = `
  SELECT r.batch, r.position, r.attempts, r.reason, b.instance, i.pid, b.answered
  FROM journal_records r JOIN journal_batches b ON b.id = r.batch LEFT JOIN journal_instances i ON i.id = b.instance
  WHERE r.state = 0 ORDER BY r.batch, r.position LIMIT 10`

/** Describes the records that are open in a journal: whose they are and how often they were tried. No values. */
export async function describeOpen(url: string): Promise<string> {
  const rows = await (url.startsWith('sqlite:') ? readFile(url.slice('sqlite:'.length)) : readServer(url))
  return rows.map((row) => JSON.stringify(row)).join('; ')
}

function readFile(file: string): object[] {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    return database.prepare(openRecords).all()
  } finally {
    database.close()
  }
}

async function readServer(url: string): Promise<object[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query<object>(openRecords)).rows
  } finally {
    await client.end()
  }
}
