import { type Kysely, sql } from 'kysely'

import { readMeta, writeMeta } from '../schema/migrate.ts'
import type { JournalTables } from '../schema/tables.ts'
import type { Store } from '../store/store.ts'

/** How an instance ended without giving its lease up. `killed`: its process is gone. `lost`: it did not renew its lease and may still run. */
export type UncleanEnd = 'killed' | 'lost'

const nameOf = (how: UncleanEnd): string => `unclean end: ${how}`

/** Notes that an instance was found gone just now, in the time of the database. */
export async function noteUncleanEnd(
  db: Kysely<JournalTables>,
  store: Pick<Store, 'nowMs'>,
  how: UncleanEnd,
): Promise<void> {
  const { rows } = await sql<{ now: number }>`select ${store.nowMs()} as now`.execute(db)
  await writeMeta(db, nameOf(how), String(rows[0]?.now ?? 0))
}

/** When an instance was last found gone; until then it may have served without the journal. Undefined: none was. */
export async function readUncleanEnd(
  db: Kysely<JournalTables>,
  how: UncleanEnd,
): Promise<number | undefined> {
  const text = await readMeta(db, nameOf(how))
  return text === undefined ? undefined : Number(text)
}
