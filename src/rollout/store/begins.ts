import { sql } from 'kysely'

import type { JournalDatabase } from '../../journal/index.ts'
import type { StageSetting } from '../stage.ts'
import type { Cell } from './row-cells.ts'
import { formatSetting, parseSetting } from './stage-row.ts'
import { noteUnrecorded } from './unrecorded.ts'

const PREFIX = 'begin '

/** The columns of a row that says where a partner began, and which rows those are; SQL. */
export const beginColumns = sql`name, text`
export const isBegin = sql<boolean>`name like ${sql.lit(`${PREFIX}%`)}`

/** Keeps where a partner begins, unless that is known already. */
export function keepBegin(database: JournalDatabase, partner: string, setting: StageSetting): Promise<void> {
  return database.db.transaction().execute(async (db) => {
    const { numInsertedOrUpdatedRows: kept } = await db
      .insertInto('rollout_evidence')
      .values({ name: `${PREFIX}${partner}`, text: formatSetting(setting) })
      .onConflict((conflict) => conflict.column('name').doNothing())
      .executeTakeFirst()
    if (kept === 1n) await noteUnrecorded({ db, nowMs: () => database.nowMs() }, partner, 0)
  })
}

/** Reads such a row; none where it is not as it was written. */
export function fromBeginCells([name, text]: readonly Cell[]): readonly (readonly [string, StageSetting])[] {
  const setting = parseSetting(String(text))
  return setting === undefined ? [] : [[String(name).slice(PREFIX.length), setting]]
}
