import { Client } from 'pg'

import type { Output } from './find-markers.ts'

export async function readTables(url: string) {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const tables = await client.query<{ name: string }>(
      `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'`,
    )
    const outputs: Output[] = []
    const counts = new Map<string, number>()
    for (const { name } of tables.rows) {
      const { rows } = await client.query<Record<string, unknown>>(`SELECT * FROM "${name}"`)
      const values = rows.flatMap((row) => Object.values(row))
      const bytes = values.map((value) =>
        Buffer.isBuffer(value) ? value : Buffer.from(`${JSON.stringify(value)}\n`),
      )
      outputs.push({ name: `table ${name}`, bytes: Buffer.concat(bytes) })
      counts.set(name, rows.length)
    }
    return { outputs, counts }
  } finally {
    await client.end()
  }
}
