import { existsSync } from 'node:fs'

import { consoleFileOf, openConsoleDatabase } from '../../console/data/open-database.ts'
import { sweepWhole } from '../../console/data/sweep.ts'
import { sqlitePathOf } from '../../journal/index.ts'

/**
 * Deletes from the tables of the console what was just erased from the journal, whether a console runs or not. Resolves false where others
 * kept the database from rewriting its files: it can be repeated. Rejects as the drivers do.
 */
export async function eraseFromConsole(url: string): Promise<boolean> {
  const path = sqlitePathOf(url)
  if (path !== undefined && !existsSync(consoleFileOf(path))) return true
  const database = await openConsoleDatabase(url)
  return sweepWhole(database).finally(database.close)
}
