import { sql } from 'kysely'

import type { Store } from './store/store.ts'

/** Tables with content of requests, and the one with hashes of keys: a change leaves the old version of a row behind. */
const contents = ['journal_payloads', 'journal_answers', 'journal_credentials', 'journal_records'] as const
const TRIES = 5

/**
 * Rewrites the files of a database without the remains of what was deleted: SQLite's pages keep them in unused space and in the log,
 * PostgreSQL's until a vacuum. Others wait meanwhile. Gives false where that did not work in time: it can be repeated.
 */
export async function rewriteFiles(store: Store): Promise<boolean> {
  const { dialect, db } = store
  try {
    if (dialect === 'postgres') {
      for (const table of contents) await sql`vacuum full ${sql.table(table)}`.execute(db)
      return true
    }
    await sql`vacuum`.execute(db)
    for (let tries = 0; tries < TRIES; tries += 1) {
      const { rows } = await sql<{ readonly busy: number }>`pragma wal_checkpoint(truncate)`.execute(db)
      if (rows[0]?.busy === 0) return true
    }
    return false
  } catch (error) {
    // A busy database, a full disk or the bound of one statement: what was erased is erased, and only remains are left.
    if (store.toStoreError(error).kind === 'transient') return false
    throw error
  }
}
