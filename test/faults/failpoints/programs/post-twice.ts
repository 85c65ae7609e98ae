import { Pool } from 'undici'

// Posts two marks one after the other, and prints each reply.

const pool = new Pool(process.argv[2] ?? '')
for (const body of ['one', 'two']) {
  const reply = await pool.request({ path: '/', method: 'POST', body })
  process.stdout.write(`${await reply.body.text()}\n`)
}
await pool.close()
