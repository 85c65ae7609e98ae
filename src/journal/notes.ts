import { type Kysely, sql } from 'kysely'

import type { JournalTables } from './schema/tables.ts'

/** Notes are rows of `journal_meta`, apart from those that the journal itself keeps there. */
const PREFIX = 'note: '

/** The text that is kept under a name; undefined: none. */
export async function readNote(db: Kysely<JournalTables>, name: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('journal_meta')
    .select('value')
    .where('name', '=', PREFIX + name)
    .executeTakeFirst()
  return row?.value
}

/** Keeps a text under a name, in place of the one before. */
export async function writeNote(db: Kysely<JournalTables>, name: string, text: string): Promise<void> {
  await db
    .insertInto('journal_meta')
    .values({ name: PREFIX + name, value: text })
    .onConflict((conflict) => conflict.column('name').doUpdateSet({ value: sql`excluded.value` }))
    .execute()
}
