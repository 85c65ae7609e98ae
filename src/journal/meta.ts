import { type Kysely, sql } from 'kysely'

import type { JournalTables } from './tables.ts'

/** Reads the value of a name in `journal_meta`; undefined: there is none. */
export async function readMeta(db: Kysely<JournalTables>, name: string): Promise<string | undefined> {
  const { rows } = await sql<{ value: string }>`select value from journal_meta where name = ${name}`.execute(
    db,
  )
  return rows[0]?.value
}

/** Sets the value of a name, in place of the one before. */
export async function writeMeta(db: Kysely<JournalTables>, name: string, value: string): Promise<void> {
  await sql`insert into journal_meta (name, value) values (${name}, ${value})
    on conflict (name) do update set value = excluded.value`.execute(db)
}
