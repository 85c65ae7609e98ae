import { existsSync } from 'node:fs'

import { sql } from 'kysely'

import { NO_KEY, sqlitePathOf } from '../../journal/index.ts'
import { deleteOldCounts } from './counts.ts'
import { type ConsoleDatabase, consoleFileOf, openConsoleDatabase } from './open-database.ts'
import { rowsOf } from './schema.ts'

const STEP = 2_000

/**
 * Compares the tables of the console with the journal. Deletes the rows of batches that the journal has purged, and the hashes of learners,
 * events and marks that the journal has erased. Batches with newly confirmed records are indexed again. One call checks some of the
 * batches, and the next call continues after them. Returns true when a call reaches the last batch.
 */
export function sweepIndex({ exclusively }: ConsoleDatabase): Promise<boolean> {
  return exclusively(async (db) => {
    interface Row {
      readonly batch: number
      readonly found: number | undefined
      readonly key: string | undefined
      readonly hasNewMarks: number
    }
    const rows = await rowsOf<Row>(db)`
      select c.batch, b.id as found, case when c.indexed = 1 and b.confirmed <> c.confirmed then 1 else 0 end as "hasNewMarks",
        (select r.key from journal_records r where r.batch = c.batch order by r.position limit 1) as key
      from console_batches c left join journal_batches b on b.id = c.batch
      where c.batch > (select swept from console_index) order by c.batch limit ${STEP}`
    const [purged, kept] = [
      rows.filter(({ found }) => found === undefined),
      rows.filter(({ found }) => found),
    ]
    const erased = kept.filter(({ key }) => key === NO_KEY)
    const changed = kept.filter(({ hasNewMarks }) => hasNewMarks === 1)
    const listOf = (some: typeof rows) => sql.join(some.map(({ batch }) => batch))
    if (purged.length > 0)
      for (const table of ['console_batches', 'console_records'])
        await sql`delete from ${sql.table(table)} where batch in (${listOf(purged)})`.execute(db)
    if (erased.length > 0)
      await sql`update console_records set learner = null, event = null, mark = null
        where batch in (${listOf(erased)}) and (learner is not null or mark is not null)`.execute(db)
    if (changed.length > 0)
      await sql`update console_batches set indexed = 2 where batch in (${listOf(changed)})`.execute(db)
    const isEnd = rows.length < STEP
    await sql`update console_index set swept = ${isEnd ? 0 : (rows.at(-1)?.batch ?? 0)}`.execute(db)
    if (isEnd) {
      await deleteOldCounts(db)
      await sql`delete from console_steps where not exists (select 1 from journal_batches b where b.id = console_steps.batch)`.execute(db) // prettier-ignore
    }
    return isEnd
  })
}

/**
 * Checks all batches, and removes the deleted rows of `console_records` from the database files. Returns false if other connections
 * prevented the removal.
 */
async function sweepWhole(database: ConsoleDatabase): Promise<boolean> {
  const { db, dialect } = database
  await sql`update console_index set swept = 0`.execute(db)
  while (!(await sweepIndex(database)));
  if (dialect === 'postgres') {
    await sql`vacuum full console_records`.execute(db)
    return true
  }
  // The write-ahead log still contains deleted content, so it is truncated. The log of the journal belongs to the adapter.
  const { rows } = await sql<{ readonly busy: number }>`pragma main.wal_checkpoint(truncate)`.execute(db)
  return rows[0]?.busy === 0
}

/**
 * Deletes from the tables of the console all content that was erased from the journal, whether or not a console is running. Returns false
 * if other connections prevented the removal from the database files. The call can then be repeated. Rejects with the error of the database
 * driver.
 */
export async function eraseFromConsole(url: string): Promise<boolean> {
  const path = sqlitePathOf(url)
  if (path !== undefined && !existsSync(consoleFileOf(path))) return true
  const database = await openConsoleDatabase(url)
  return sweepWhole(database).finally(database.close)
}
