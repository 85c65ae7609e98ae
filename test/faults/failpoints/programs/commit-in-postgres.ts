import { Client } from 'pg'

// Commits three numbers, each in its own transaction.

const client = new Client({ connectionString: process.argv[2] })
await client.connect()
for (const n of [1, 2, 3]) {
  await client.query('BEGIN')
  await client.query({ text: 'INSERT INTO kept VALUES ($1)', values: [n] })
  await client.query('COMMIT')
}
await client.end()
