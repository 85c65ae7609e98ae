import { type Kysely, sql, type Transaction } from 'kysely'

import type { JournalDatabase, JournalTables } from '../../journal/index.ts'

/**
 * Runs a transaction that leaves no bytes of what it deletes or moves in the file of SQLite. PostgreSQL keeps deleted rows until its next
 * vacuum.
 */
export function overwriting<Result>(
  { db, dialect }: JournalDatabase,
  work: (transaction: Transaction<JournalTables>) => Promise<Result>,
): Promise<Result> {
  return db.transaction().execute(async (transaction) => {
    if (dialect === 'postgres') return work(transaction)
    // Within the transaction, which has the connection to itself: another one may have set it for its own work.
    const { rows } = await sql<{ secure_delete: number }>`PRAGMA secure_delete`.execute(transaction)
    await set(transaction, 1)
    try {
      return await work(transaction)
    } finally {
      await set(transaction, rows[0]?.secure_delete ?? 0)
    }
  })
}

async function set(db: Kysely<JournalTables>, value: number): Promise<void> {
  await sql.raw(`PRAGMA secure_delete = ${value}`).execute(db)
}
